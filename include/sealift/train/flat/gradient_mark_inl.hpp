// SPDX-License-Identifier: Apache-2.0
// The bodies of gradient_mark.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/flat/gradient_mark.hpp>

namespace sealift::train {

SEALIFT_BODY void GradientMark::set(GradientSlot& slot, bool waits) {
  auto& [name, parameter, leaf] = slot;
  if (waits) {
    if (!leaf.grad().defined()) leaf.mutable_grad() = guard(unreduced_, leaf, name, kUnreduced);
    leaf_gradient_ = leaf.grad().unsafeGetTensorImpl();
    version_ = leaf.grad()._version();
  }
  on_parameter_ = !parameter.is_same(leaf) && (waits || leaf.grad().defined());
  if (on_parameter_) parameter.mutable_grad() = guard(sharded_, parameter, name, kSharded);
}

SEALIFT_BODY bool GradientMark::take(GradientSlot& slot) {
  auto& [name, parameter, leaf] = slot;
  bool zeroed = false;
  if (const auto* expected = std::exchange(leaf_gradient_, nullptr)) {
    zeroed = leaf.grad().unsafeGetTensorImpl() != expected || leaf.grad()._version() != version_;
    if (leaf.grad().is_same(unreduced_)) leaf.mutable_grad().reset();
  }
  if (!std::exchange(on_parameter_, false)) return zeroed;
  if (parameter.grad().is_same(sharded_)) {
    parameter.mutable_grad().reset();
    return zeroed;
  }
  leaf.mutable_grad().reset();  // as model->zero_grad() meant
  return true;
}

SEALIFT_BODY at::Tensor GradientMark::guard(at::Tensor& made, const at::Tensor& like, const std::string& name,
                                            const char* text) {
  if (!made.defined()) {
    made = detail::guard_tensor(like,
                                detail::guard_storage(like.device(), like.nbytes(), "parameter '" + name + "'" + text));
  }
  return made;
}

}  // namespace sealift::train
