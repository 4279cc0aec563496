// SPDX-License-Identifier: Apache-2.0
// Uneven data: ranks with fewer batches go on taking part until all have run out.
// A loop asks it before each step; `parallel` and the optimizer are used as ever.
// A rank that ran out runs its last batch once more, so that units, order and collectives are those of the others, and
// its gradients are replaced by zeros as they reach the parameters. A loss times zero would not do: through an infinite
// derivative 0 * inf is NaN, and one rank's NaN is everybody's after the sum.
// Modules that are split over ranks (experts) send nothing there, so what their parameters get is the others' alone.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/parallel.hpp>

namespace sealift::train {

/// By what gradients are divided in a step that some ranks had no data for.
enum class DivideBy {
  BatchesWithData,  ///< the mean over the batches that were there, as one process would have it
  AllRanks          ///< by the world size still: fewer batches, a smaller step. Python's DDP does it by default
};

/// One per rank, for as long as the data lasts:
///
///   Join join(parallel);
///   while (join.next(batch.has_value())) {   // false on all ranks at once, when none has a batch
///     if (batch) last = *batch;              // a rank without one makes its last do, for nothing
///     ... a step on `last`, as without Join
///     batch = data.next();
///   }
///
/// With micro-batches: `next(n)` with the n of them that this rank has for the step, and then micro_batches() times
/// `begin(m)` in place of Parallel::set_micro_batch, and a backward of the loss / micro_batches(). A rank that never
/// had a batch makes one up of the right shape. Batch norms see the batch that is repeated.
class Join {
 public:
  explicit Join(Parallel& parallel, DivideBy divide_by = DivideBy::BatchesWithData);
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;
  ~Join();

  /// Begins a step for which this rank has `batches` (micro-)batches; 0 or false: it ran out. Whether any rank has one;
  /// when none has, gradients are divided by the world size again. Collective over the world: one number, on the host.
  bool next(std::int64_t batches);

  /// Before the forward of micro-batch `micro` of the step; whether this rank has data for it. `next` does it for the
  /// first.
  bool begin(std::int64_t micro);

  /// Of this step, on every rank: as many as the rank with the most has.
  std::int64_t micro_batches() const { return micro_batches_; }

  /// With data in this step, over all ranks: the weight of the step's mean loss.
  std::int64_t batches() const { return batches_; }

 private:
  /// Puts a hook before the gradient of every trainable parameter, for ranks that run out only.
  void listen();

  Parallel& parallel_;
  DivideBy divide_by_;
  std::int64_t here_ = 0, micro_batches_ = 0, batches_ = 0;
  std::shared_ptr<bool> mute_;
  std::vector<std::pair<at::Tensor, unsigned>> hooks_;
};

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/step/join_inl.hpp>
#endif
