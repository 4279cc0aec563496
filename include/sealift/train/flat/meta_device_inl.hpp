// SPDX-License-Identifier: Apache-2.0
// The bodies of meta_device.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/flat/meta_device.hpp>

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace sealift::train {

namespace detail {

/// Whether `op` makes a tensor whose values mean nothing (`empty`) or are random.
SEALIFT_BODY bool makes_no_lasting_values(std::string_view op) {
  static constexpr std::array<std::string_view, 8> kOps{"aten::empty",   "aten::empty_strided", "aten::empty_permuted",
                                                        "aten::normal",  "aten::rand",          "aten::randn",
                                                        "aten::randint", "aten::randperm"};
  return std::find(kOps.begin(), kOps.end(), op) != kOps.end();
}

/// Calls `op` as it would have been; one of the above that names no device gets the meta device.
SEALIFT_BODY void call_on_meta(const c10::OperatorHandle& op, c10::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard below(c10::DispatchKey::DeferredInit);
  const auto& schema = op.schema();
  if (makes_no_lasting_values(schema.name())) {
    if (const auto device = schema.argumentIndexWithName("device")) {
      auto& value = (*stack)[stack->size() - schema.arguments().size() + static_cast<std::size_t>(*device)];
      if (value.isNone()) value = c10::Device(at::kMeta);
    }
  }
  op.callBoxed(stack);
}

SEALIFT_BODY void replace_data(at::Tensor tensor, const at::Tensor& data) {
  // `set_data` refuses to leave the meta device or to go there, but takes over from an empty tensor; it renews the grad
  // accumulator.
  if (tensor.is_meta() != data.is_meta()) {
    tensor.unsafeGetTensorImpl()->shallow_copy_from(torch::empty({0}, data.options()).getIntrusivePtr());
  }
  tensor.set_data(data);
}

}  // namespace detail

SEALIFT_BODY void MetaDevice::register_once() {
  static const auto registered = c10::Dispatcher::singleton().registerFallback(
      c10::DispatchKey::DeferredInit, c10::KernelFunction::makeFromBoxedFunction<&detail::call_on_meta>(),
      "sealift::train::MetaDevice");
}

}  // namespace sealift::train
