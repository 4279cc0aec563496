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
};

/// A parallel model. Move-only; the model stays parallel when this is destroyed.
class Parallel {
 public:
  Parallel(std::shared_ptr<Session> session, std::vector<ShardedParameter> parameters,
           std::vector<std::string> warnings)
      : session_(std::move(session)), parameters_(std::move(parameters)), warnings_(std::move(warnings)) {
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
    session_->sync = last || policy.reduce_every_micro_batch;
    session_->sync_copies = last || !policy.defer_all_reduce;
    session_->keep_after_forward = policy.keep_gathered && micro_batches > 1;
    session_->keep_after_backward = policy.keep_gathered && !last;
    session_->continues = micro > 0;
  }

  // FSDP2's setters, for loops to which set_micro_batch does not apply.

  /// With false, backward only collects gradients on this rank; the next one with true reduces their sum.
  void set_requires_gradient_sync(bool sync) { session_->sync = sync; }

  /// hsdp: with false, gradients are summed over the shard group only; the next reduction with true sums over the
  /// copies.
  void set_requires_all_reduce(bool all_reduce) { session_->sync_copies = all_reduce; }

  /// With false, units stay gathered after their backward, for another forward before the optimizer's step.
  void set_reshard_after_backward(bool reshard) { session_->keep_after_backward = session_->continues = !reshard; }

  /// Gathers the units at `next` while the one at `path` runs forward, instead of those next in the order of calls.
  void set_forward_prefetch(const std::string& path, const std::vector<std::string>& next) {
    unit(path).set_forward_prefetch(numbers(next));
  }

  /// The same for backward.
  void set_backward_prefetch(const std::string& path, const std::vector<std::string>& next) {
    unit(path).set_backward_prefetch(numbers(next));
  }

  /// Adds the gradients that wait in host memory (`Offload::gradients`) to those of the shards. Call before clipping
  /// and step.
  void prepare_step() { session_->reducer.flush(); }

  /// Drops a step that an exception cut short: nothing is gathered, collected or in flight after it. Call on all ranks.
  void reset() { session_->reset(); }

  /// While it lives, every parameter holds its whole values, for reading as in evaluation or export. Collective.
  class [[nodiscard]] Whole {
   public:
    explicit Whole(std::shared_ptr<Session> session) : session_(std::move(session)) {
      for (auto& unit : session_->units) {
        for (auto& flat : unit->flats()) flat->unshard();
      }
    }
    Whole(const Whole&) = delete;
    Whole& operator=(const Whole&) = delete;
    ~Whole() {
      for (auto& unit : session_->units) unit->reshard();
    }

   private:
    std::shared_ptr<Session> session_;
  };
  Whole gather_parameters() { return Whole(session_); }

  Groups& groups() { return session_->groups; }
  const Policy& policy() const { return session_->policy; }
  const Reducer& reducer() const { return session_->reducer; }
  const std::vector<std::unique_ptr<Unit>>& units() const { return session_->units; }

  /// Advice on the choice of units.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  Unit& unit(const std::string& path) {
    for (auto& candidate : session_->units) {
      if (candidate->path() == path) return *candidate;
    }
    TORCH_CHECK(false, "there is no unit '", path, "'; see Parallel::units()");
  }

  std::vector<std::size_t> numbers(const std::vector<std::string>& paths) {
    std::vector<std::size_t> result;
    for (const auto& path : paths) result.push_back(unit(path).number());
    return result;
  }

  std::shared_ptr<Session> session_;
  std::vector<ShardedParameter> parameters_;
  std::vector<NamedTensor> shards_;
  std::vector<std::string> warnings_;
};

}  // namespace sealift::train
