// SPDX-License-Identifier: Apache-2.0
// A parallel model as a training loop sees it: what to step, when to reduce, and how to read whole parameters.
// `parallelize` makes it; the loop and the rooms `step` and `checkpoint` use it.
// The model itself is called as before, so that a loop needs nothing else.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/unit/unit_graph.hpp>

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
           std::vector<std::string> warnings, std::vector<std::string> notes);
  Parallel(Parallel&&) = default;
  Parallel& operator=(Parallel&&) = default;

  /// Every parameter of the model, in the order of its units; the same order and names on all ranks.
  const std::vector<ShardedParameter>& parameters() const { return parameters_; }

  /// The trainable parameters as this rank holds them, by name, as for weight-decay groups.
  const std::vector<NamedTensor>& named_shards() const { return shards_; }

  /// The same without names, for an optimizer.
  std::vector<at::Tensor> shards() const;

  /// Throws unless `optimizer` steps the shards; one made before `parallelize` would silently train nothing.
  void check_optimizer(torch::optim::Optimizer& optimizer) const;

  /// Call before the forward of micro-batch `micro` of `micro_batches`. As far as the policy allows, gradients are
  /// reduced with the last one only and parameters stay gathered in between: each unit is gathered and reduced once.
  void set_micro_batch(std::int64_t micro, std::int64_t micro_batches);

  // FSDP2's setters, for loops to which set_micro_batch does not apply.

  /// With false, backward only collects gradients on this rank; the next one with true reduces their sum.
  void set_requires_gradient_sync(bool sync) { session_->pass.reduce = sync; }

  /// hsdp: with false, gradients are summed over the shard group only; the next reduction with true sums over the
  /// copies.
  void set_requires_all_reduce(bool all_reduce) { session_->pass.over_copies = all_reduce; }

  /// With false, units stay gathered after their backward, for another forward before the optimizer's step.
  void set_reshard_after_backward(bool reshard);

  /// Gradients become the sum over ranks and micro-batches divided by `factor`, as for a loss that is summed over a
  /// number of tokens which differs from rank to rank; 0: by the world size. Holds until it is changed; may be set
  /// until the last backward of a step, on one process until the first. The same on all ranks.
  void set_gradient_divide_factor(double factor);

  /// Gathers the units at `next` while the one at `path` runs forward, instead of those next in the order of calls.
  void set_forward_prefetch(const std::string& path, const std::vector<std::string>& next);

  /// The same for backward.
  void set_backward_prefetch(const std::string& path, const std::vector<std::string>& next);

  /// Tells `observer` what this rank's units begin and end from now on.
  void observe(std::shared_ptr<Observer> observer) { session_->groups.observers->add(std::move(observer)); }

  /// Calls `look` for each tensor that a unit's forward returns, from now on; null: no more. For a step that is done
  /// again to find out where values go wrong.
  void look_at_outputs(std::function<void(const std::string& unit, const at::Tensor& output)> look) {
    session_->on_output = std::move(look);
  }

  /// Drops a step that an exception cut short: nothing is gathered, collected or in flight after it. Call on all ranks,
  /// and zero_grad() after a backward, which may have left means of units that were done.
  void reset() { session_->reset(); }

  /// While it lives, every parameter holds its whole values, for reading and for forwards, as in evaluation or export.
  /// The optimizer must not step meanwhile. Collective.
  class [[nodiscard]] Whole {
   public:
    explicit Whole(std::shared_ptr<Session> session);
    Whole(const Whole&) = delete;
    Whole& operator=(const Whole&) = delete;
    ~Whole();

   private:
    std::shared_ptr<Session> session_;
    std::vector<FlatParam*> gathered_;  ///< here; the others stay as they are
    std::uint64_t made_ = 0;            ///< buffers before: a step needs no more
  };
  Whole gather_parameters() { return Whole(session_); }

  /// With `Policy::stable_addresses`: the buffers that flats use; complete after two steps and an evaluation. Valid as
  /// long as the model.
  std::vector<FlatMemory> flat_memory() const;

  /// Calls `observer` for every buffer that a flat takes from now on, with its address and size, on the thread that
  /// takes it.
  void observe_flat_memory(std::function<void(const void* data, std::size_t bytes)> observer) const;

  Groups& groups() { return session_->groups; }

  /// The ranks that together hold each element of what is not replicated once: the ranks that shard, and the ranks
  /// along the axis that modules are split over.
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
  Unit& unit(const std::string& path);

  /// Divides the gradients that no reduction sees: those of parameters that are whole on the only rank.
  void divide_alone(double factor);

  std::vector<std::size_t> numbers(const std::vector<std::string>& paths);

  std::shared_ptr<Session> session_;
  std::vector<ShardedParameter> parameters_;
  std::vector<NamedTensor> shards_;
  std::vector<std::string> warnings_, notes_;
  std::shared_ptr<double> alone_;  ///< divisor of gradients on one process, once it was set
};

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/parallel_inl.hpp>
#endif
