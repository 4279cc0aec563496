// SPDX-License-Identifier: Apache-2.0
// What a loop finds between two backward passes where a gradient is sharded, or collected but not reduced yet.
// `flat_gradient` keeps one for each parameter, sets it after a pass and takes it back before the next.
// The loop may reset it, as zero_grad() does, and so says that it drops the gradient; reading it throws, where it would
// silently find nothing.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/flat/guard.hpp>

#include <utility>

namespace sealift::train {

/// A parameter, and the leaf that holds this rank's part of it; the same tensor when replicated.
struct GradientSlot {
  std::string name;
  at::Tensor parameter, leaf;
};

/// Of one slot.
class GradientMark {
 public:
  /// Puts guards where the loop cannot read a gradient; one that `waits` was collected and is not on the leaf yet.
  void set(GradientSlot& slot, bool waits);

  /// Takes the guards away; whether the loop has zeroed the gradient meanwhile.
  bool take(GradientSlot& slot);

 private:
  static constexpr const char* kSharded =
      " is sharded: its gradient lies in pieces on the ranks; drop it with zero_grad() (set_to_none); clip with "
      "sealift::train::clip_grad_norm_(parallel, "
      "max_norm) and make the optimizer from Parallel::shards()";
  static constexpr const char* kUnreduced =
      " has a gradient that was collected but not reduced, since the accumulation was cut short; reduce with the last "
      "micro-batch, or drop it with zero_grad() (set_to_none) or Parallel::reset()";

  static at::Tensor guard(at::Tensor& made, const at::Tensor& like, const std::string& name, const char* text);

  at::Tensor sharded_, unreduced_;           ///< guards for the parameter and the leaf, made when first needed
  bool on_parameter_ = false;                ///< the parameter has its guard
  at::TensorImpl* leaf_gradient_ = nullptr;  ///< the leaf's gradient or guard; null if nothing waits
  std::uint32_t version_ = 0;                ///< ... of it
};

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/flat/gradient_mark_inl.hpp>
#endif
