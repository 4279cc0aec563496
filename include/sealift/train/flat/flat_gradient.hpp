// SPDX-License-Identifier: Apache-2.0
// One buffer of gradients that are reduced together: those of a flat, or a bucket of replicated parameters.
// Takes the gradient that autograd leaves on each parameter, sums micro-batches, reduces over the mesh, and gives the
// mean to `leaf_gradients`. Knows nothing of units: `reducer` says when.
// Between passes the loop sees guards where a gradient is not: what it zeroes there is dropped here.
// Gradients are divided by the world size as they are copied in, which costs no pass of its own. Fp16 could underflow
// by that, so it is divided by about the square root before the sum and by the rest after (as FSDP1 and FSDP2 do).
// Mirrored by trainer/plan/engine_memory.cpp: change both.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/flat/flat_param.hpp>
#include <sealift/train/flat/gradient_mark.hpp>
#include <sealift/train/flat/leaf_gradients.hpp>
#include <sealift/train/flat/power_sgd_transport.hpp>

#include <set>

namespace sealift::train {

/// Names a gradient from the hook that sees it to the buffer that reduces it: parameter `index` of flat `flat`. Flats
/// are numbered as the reducer gets them; replicated parameters are one flat, in the order of the model, whatever
/// bucket they are in.
struct ParameterId {
  std::size_t flat = 0, index = 0;
};

enum class Reduction {
  Idle,        ///< after construction and `finish`
  Scattering,  ///< after `start`: the sum over the shard group is in flight, or there is nothing to sum
  Summing,     ///< after `advance`: the sum over the copies is in flight
};

class FlatGradient {
 public:
  struct Options {
    std::string label = {};                              ///< for messages
    std::optional<at::ScalarType> reduce_dtype = {};     ///< unset: that of the leaves
    bool on_host = false;                                ///< means wait in host memory until `flush`
    bool always_used = false;                            ///< ranks need not agree on which parameters had a gradient
    GradientCompression compression = {};                ///< how it travels
    std::shared_ptr<PowerSgd> power_sgd = {};            ///< for `GradientCompression::PowerSgd`
    std::shared_ptr<detail::SteadyBuffers> memory = {};  ///< of the buffers and of what travels; null: `BufferPool`
    bool late = false;  ///< gradients stay on their parameters until `settle`: less memory when they are narrower
  };

  /// Slot i of the buffer lies at placement i of `layout`, whose shards are those of the groups' mesh.
  FlatGradient(std::vector<GradientSlot> slots, FlatLayout layout, Groups groups, Options options);

  FlatGradient(const FlatGradient&) = delete;
  FlatGradient& operator=(const FlatGradient&) = delete;

  const std::vector<GradientSlot>& slots() const { return slots_; }
  const FlatLayout& layout() const { return layout_; }
  Reduction reduction() const { return reduction_; }

  /// Whether the sum over the shard group is followed by one over the copies.
  bool sums_over_copies() const { return layout_.shards > 1 && groups_.mesh.replicate > 1; }

  /// Takes the gradient of parameter `index`, to be added to those of earlier micro-batches.
  void collect(std::size_t index);

  /// The same of a gradient that is left · right, which nobody has computed: the product adds itself to the buffer.
  /// False, and nothing is done, where it must be a tensor first.
  bool collect_product(std::size_t index, const at::Tensor& left, const at::Tensor& right);

  /// Moves late gradients into the buffer.
  void settle();

  /// Whether gradients were collected since the last reduction.
  bool has_any_gradient() const { return used_ > 0 || !late_.empty(); }
  bool has_gradient(std::size_t index) const { return has_gradient_[index]; }

  /// Whether there is something to reduce: new gradients, or a partial sum that was not summed over the copies.
  bool needs_reduction() const { return has_any_gradient() || partial_.defined() || options_.always_used; }

  /// Starts to sum the collected gradients over the shard group, and over the copies if `over_copies`; otherwise the
  /// partial sum waits for a reduction that does. Collective over the shard group.
  void start(bool over_copies);

  /// Waits for the sum over the shard group, which frees the whole, and starts the sum over the copies, if there are
  /// any, or its next round. Collective over the replicate group.
  void advance();

  /// Waits for the sum and adds the mean, which is the sum / `divisor`, to the gradients of the leaves.
  void finish(double divisor);

  /// Waits for the sum and keeps it until `give`, since ranks have not agreed yet which parameters were used.
  void put_aside();

  /// Adds the mean of what was put aside, if anything, to the gradients of the leaves; without the sum over the copies,
  /// it waits for one.
  void give(double divisor);

  /// See LeafGradients.
  void land() { leaves_.land(); }
  void flush() { leaves_.flush(); }
  void hide_means() { leaves_.hide(); }
  void show_means() { leaves_.show(); }

  /// Drops what was collected and not reduced, after a backward pass that failed or a step that was cut short.
  void drop();

  /// After a backward pass: guards in place of the gradients that the loop cannot read.
  void set_marks();

  /// Before the next one: takes the guards away, and drops the gradients that the loop has zeroed meanwhile.
  void take_marks();

  bool has_sum_aside() const { return aside_.defined(); }
  bool was_used(std::size_t index) const { return used_aside_.contains(index); }

  /// Some rank had a gradient for slot `index` in the sum that was put aside, so it gets a mean on this rank too.
  void set_used(std::size_t index) { used_aside_.insert(index); }

 private:
  /// Forgets what was collected of slot `index` since the last complete reduction.
  void drop(std::size_t index);

  /// Moves the gradient of parameter `index` into the buffer.
  void take(std::size_t index);
  /// The place of parameter `index` in the buffer, which is made `like` a gradient where there is none.
  at::Tensor place_of(std::size_t index, const at::Tensor& like);
  void written(std::size_t index);

  void complete();

  /// For the sum in flight, or for its round only, if another follows.
  void wait(bool for_all = true);

  void forget();

  /// Adds to an error which parameters had no gradient on this rank, in case the ranks disagree about that.
  template <class Body>
  void in_context(const Body& body) const;

  std::uint64_t used_hash() const { return options_.always_used ? 0 : std::hash<std::vector<bool>>{}(has_gradient_); }

  /// Parameters without a gradient, and the padding, count as zero in the sum.
  void zero_unwritten();

  /// Reuses the buffer of the last step if the optimizer's `zero_grad` has released it.
  void make_room(at::Tensor& buffer, std::int64_t numel, const at::Tensor& like) const;

  std::vector<GradientSlot> slots_;
  FlatLayout layout_;
  Groups groups_;
  Options options_;
  at::ScalarType dtype_;
  double before_ = 1;  ///< divisor before the sum; the rest of the divisor comes after it
  Reduction reduction_ = Reduction::Idle;
  bool over_copies_ = true;
  at::Tensor scale_;                ///< 1 / before_
  std::vector<bool> has_gradient_;  ///< per slot: collected since the last reduction
  std::size_t used_ = 0;            ///< number of slots with a gradient
  std::set<std::size_t> late_;      ///< slots whose gradient is on the parameter still
  std::set<std::size_t> pending_;   ///< slots whose gradient lies in `partial_` only
  at::Tensor whole_;                ///< [padded], summed over micro-batches; freed by the reduction when sharded
  at::Tensor reduced_;              ///< result of the reduction in flight: `whole_`, or [padded / shards]
  at::Tensor partial_;              ///< [padded / shards], summed over the shard group but not yet over the copies
  at::Tensor aside_;                ///< like `reduced_`: complete sums of this pass, until ranks agree on what was used
  std::set<std::size_t> used_aside_;  ///< slots with a gradient of this rank in it
  std::unique_ptr<Transport> transport_;
  Transfer transfer_;                ///< after `transport_`, which it uses
  std::vector<GradientMark> marks_;  ///< per slot
  LeafGradients leaves_;
};

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/flat/flat_gradient_inl.hpp>
#endif
