// SPDX-License-Identifier: Apache-2.0
// A parallel model as a training loop sees it: what to step, when to reduce, and how to read whole parameters.
// `parallelize` makes it; the loop and the rooms `step` and `checkpoint` use it.
// The model itself is called as before, so that a loop needs nothing else.
#pragma once

#include <sealift/train/unit/unit_passes.hpp>

#include <unordered_set>

namespace sealift::train {

/// One parameter of the model, trainable or frozen, as this rank holds it.
struct ShardedParameter {
  std::string name;
  std::vector<std::int64_t> sizes;  ///< of the whole parameter
  std::int64_t offset = 0;          ///< of this rank's first element in the flattened parameter
  at::Tensor shard;                 ///< this rank's elements; empty when it holds none
  bool replicated = false;          ///< every rank holds all of it
  bool stored = false;              ///< what is held is no element: `shard` is empty
  std::int64_t copies = 1;          ///< ranks that hold these very elements
  std::int64_t copy = 0;            ///< ... and this rank's number among them
};

/// A parallel model. Move-only; the model stays parallel when this is destroyed.
class Parallel {
 public:
  Parallel(std::shared_ptr<Session> session, std::vector<ShardedParameter> parameters,
           std::vector<std::string> warnings, std::vector<std::string> notes)
      : session_(std::move(session)),
        parameters_(std::move(parameters)),
        warnings_(std::move(warnings)),
        notes_(std::move(notes)) {
    for (const auto& parameter : parameters_) {
      if (parameter.shard.requires_grad()) shards_.push_back({parameter.name, parameter.shard});
    }
  }
  Parallel(Parallel&&) = default;
  Parallel& operator=(Parallel&&) = default;

  /// Every parameter of the model, in the order of its units; the same order and names on all ranks.
  const std::vector<ShardedParameter>& parameters() const { return parameters_; }

  /// The trainable parameters as this rank holds them, by name, as for weight-decay groups.
  const std::vector<NamedTensor>& named_shards() const { return shards_; }

  /// The same without names, for an optimizer.
  std::vector<at::Tensor> shards() const {
    std::vector<at::Tensor> tensors;
    for (const auto& shard : shards_) tensors.push_back(shard.tensor);
    return tensors;
  }

  /// Throws unless `optimizer` steps the shards; one made before `parallelize` would silently train nothing.
  void check_optimizer(torch::optim::Optimizer& optimizer) const {
    std::unordered_set<at::TensorImpl*> known;
    for (const auto& shard : shards_) known.insert(shard.tensor.unsafeGetTensorImpl());
    for (auto& group : optimizer.param_groups()) {
      for (const auto& tensor : group.params()) {
        TORCH_CHECK(known.contains(tensor.unsafeGetTensorImpl()), "the optimizer steps a tensor of shape ",
                    tensor.sizes(), " that is not one of this model's ", shards_.size(),
                    " shards; make the optimizer after parallelize(), from Parallel::shards()");
      }
    }
  }

  /// Call before the forward of micro-batch `micro` of `micro_batches`. As far as the policy allows, gradients are
  /// reduced with the last one only and parameters stay gathered in between: each unit is gathered and reduced once.
  void set_micro_batch(std::int64_t micro, std::int64_t micro_batches) {
    TORCH_CHECK(micro >= 0 && micro < micro_batches, "micro-batch ", micro, " of ", micro_batches,
                "; expected a number from 0 to ", micro_batches - 1);
    const auto& policy = session_->policy;
    const bool last = micro + 1 == micro_batches;
    if (micro == 0) session_->reducer.drop();  // what a step that was cut short has left
    session_->pass = {.reduce = last || policy.reduce_every_micro_batch,
                      .over_copies = last || !policy.defer_all_reduce,
                      .keep = session_->keep_gathered && micro_batches > 1,
                      .first = micro == 0,
                      .last = last};
  }

  // FSDP2's setters, for loops to which set_micro_batch does not apply.

  /// With false, backward only collects gradients on this rank; the next one with true reduces their sum.
  void set_requires_gradient_sync(bool sync) { session_->pass.reduce = sync; }

  /// hsdp: with false, gradients are summed over the shard group only; the next reduction with true sums over the
  /// copies.
  void set_requires_all_reduce(bool all_reduce) { session_->pass.over_copies = all_reduce; }

  /// With false, units stay gathered after their backward, for another forward before the optimizer's step.
  void set_reshard_after_backward(bool reshard) {
    session_->pass.keep = !reshard;
    session_->pass.last = reshard;
  }

  /// Gradients become the sum over ranks and micro-batches divided by `factor`, as for a loss that is summed over a
  /// number of tokens which differs from rank to rank; 0: by the world size. Holds until it is changed; may be set
  /// until the last backward of a step, on one process until the first. The same on all ranks.
  void set_gradient_divide_factor(double factor) {
    session_->reducer.set_divisor(factor);
    if (session_->groups.world.size() == 1) divide_alone(factor);
  }

  /// Gathers the units at `next` while the one at `path` runs forward, instead of those next in the order of calls.
  void set_forward_prefetch(const std::string& path, const std::vector<std::string>& next) {
    unit(path).set_forward_prefetch(numbers(next));
  }

  /// The same for backward.
  void set_backward_prefetch(const std::string& path, const std::vector<std::string>& next) {
    unit(path).set_backward_prefetch(numbers(next));
  }

  /// Tells `observer` what this rank's units begin and end from now on.
  void observe(std::shared_ptr<Observer> observer) { session_->groups.observers->add(std::move(observer)); }

  /// Drops a step that an exception cut short: nothing is gathered, collected or in flight after it. Call on all ranks,
  /// and zero_grad() after a backward, which may have left means of units that were done.
  void reset() { session_->reset(); }

  /// While it lives, every parameter holds its whole values, for reading and for forwards, as in evaluation or export.
  /// The optimizer must not step meanwhile. Collective.
  class [[nodiscard]] Whole {
   public:
    explicit Whole(std::shared_ptr<Session> session) : session_(std::move(session)) {
      const bool in_backward = session_->in_backward;
      if (session_->memory) made_ = session_->memory->made();
      // What was gathered before may be older than the optimizer's last step.
      if (session_->forwards == 0 && !in_backward && session_->holds == 0) ++session_->epoch;
      for (auto& unit : session_->units) {
        for (auto& flat : unit->flats()) {
          if (!flat->has_memory()) gathered_.push_back(flat.get());
          in_backward ? flat->unshard() : flat->unshard(session_->epoch);
        }
      }
      ++session_->holds;
    }
    Whole(const Whole&) = delete;
    Whole& operator=(const Whole&) = delete;
    ~Whole() {
      if (--session_->holds > 0) return;
      for (auto* flat : gathered_) flat->reshard();
      if (session_->memory) session_->memory->release(made_);
    }

   private:
    std::shared_ptr<Session> session_;
    std::vector<FlatParam*> gathered_;  ///< here; the others stay as they are
    std::uint64_t made_ = 0;            ///< buffers before: a step needs no more
  };
  Whole gather_parameters() { return Whole(session_); }

  /// With `Policy::stable_addresses`: the buffers that flats use; complete after two steps and an evaluation. Valid as
  /// long as the model.
  std::vector<FlatMemory> flat_memory() const {
    return session_->memory ? session_->memory->all() : std::vector<FlatMemory>{};
  }

  /// Calls `observer` for every buffer that a flat takes from now on, with its address and size, on the thread that
  /// takes it.
  void observe_flat_memory(std::function<void(const void* data, std::size_t bytes)> observer) const {
    TORCH_CHECK(session_->memory, "flats have no buffers of their own; set Policy::stable_addresses");
    session_->memory->observe(std::move(observer));
  }

  Groups& groups() { return session_->groups; }

  /// The ranks that together hold each element of what is not replicated once: those that shard, and those along the
  /// axis that modules are split over.
  Collectives& holders() { return session_->holders; }

  /// Whether ranks hold different modules, as experts, and send each other inputs.
  bool is_split() const { return !session_->split.empty(); }
  bool is_split(const std::string& parameter) const { return session_->split.contains(parameter); }

  /// While true, this rank's inputs reach no module of another; `Join` sets it.
  const std::shared_ptr<bool>& silent() const { return session_->silent; }

  const Policy& policy() const { return session_->policy; }
  const Reducer& reducer() const { return session_->reducer; }
  const std::vector<std::unique_ptr<Unit>>& units() const { return session_->units; }

  /// Advice on the choice of units.
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// What was chosen where the policy leaves it open, and what it costs, for a log.
  const std::vector<std::string>& notes() const { return notes_; }

  /// Whether units stay gathered between micro-batches.
  bool keeps_gathered() const { return session_->keep_gathered; }

 private:
  Unit& unit(const std::string& path) {
    for (auto& candidate : session_->units) {
      if (candidate->path() == path) return *candidate;
    }
    TORCH_CHECK(false, "there is no unit '", path, "'; see Parallel::units()");
  }

  /// Divides the gradients that no reduction sees: those of parameters that are whole on the only rank.
  void divide_alone(double factor) {
    if (alone_) {
      *alone_ = factor;
      return;
    }
    if (factor == 0) return;
    alone_ = std::make_shared<double>(factor);
    for (const auto& [name, parameter] : shards_) {
      parameter.register_hook([divisor = alone_](const at::Tensor& gradient) {
        return *divisor > 0 ? gradient / *divisor : at::Tensor();  // undefined: as it was
      });
    }
  }

  std::vector<std::size_t> numbers(const std::vector<std::string>& paths) {
    std::vector<std::size_t> result;
    for (const auto& path : paths) result.push_back(unit(path).number());
    return result;
  }

  std::shared_ptr<Session> session_;
  std::vector<ShardedParameter> parameters_;
  std::vector<NamedTensor> shards_;
  std::vector<std::string> warnings_, notes_;
  std::shared_ptr<double> alone_;  ///< divisor of gradients on one process, once it was set
};

}  // namespace sealift::train
