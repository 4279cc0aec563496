// SPDX-License-Identifier: Apache-2.0
// Models without memory: under `MetaDevice` a module's parameters have shapes and dtypes only, on the meta device.
// Before `parallelize`, which gives each rank the memory of its part and the values of a `Source`.
// LibTorch has no default device that one could set, so the dispatcher is asked to call us before every operator.
#pragma once

#include <torch/torch.h>

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace sealift::train {

namespace detail {

/// Whether `op` makes a tensor whose values mean nothing (`empty`) or are random.
inline bool makes_no_lasting_values(std::string_view op) {
  static constexpr std::array<std::string_view, 8> kOps{"aten::empty",   "aten::empty_strided", "aten::empty_permuted",
                                                        "aten::normal",  "aten::rand",          "aten::randn",
                                                        "aten::randint", "aten::randperm"};
  return std::find(kOps.begin(), kOps.end(), op) != kOps.end();
}

/// Calls `op` as it would have been; one of the above that names no device gets the meta device.
inline void call_on_meta(const c10::OperatorHandle& op, c10::Stack* stack) {
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

/// `tensor` = `data`, whatever device it was on, and stays the same tensor for modules, ties and autograd.
inline void replace_data(at::Tensor tensor, const at::Tensor& data) {
  // `set_data` refuses to leave the meta device, but takes over from an empty tensor; it renews the grad accumulator.
  if (tensor.is_meta()) {
    tensor.unsafeGetTensorImpl()->shallow_copy_from(torch::empty({0}, data.options()).getIntrusivePtr());
  }
  tensor.set_data(data);
}

}  // namespace detail

/// While it lives, what this thread makes by `torch::empty` or a random factory, naming no device, is on the meta
/// device: all parameters of LibTorch's own modules, whose first values then cost nothing. Factories that give values
/// (`zeros`, `ones`, `arange`, `tensor`) work as always: so tables, masks and statistics, which are in no file, are
/// right on every rank, and a large parameter should be made by `torch::empty`. End it before `parallelize`.
class MetaDevice {
 public:
  MetaDevice() : include_(c10::DispatchKey::DeferredInit) { register_once(); }
  MetaDevice(const MetaDevice&) = delete;
  MetaDevice& operator=(const MetaDevice&) = delete;

  /// Whether one lives in this thread.
  static bool lives() { return c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::DeferredInit); }

 private:
  /// Once in a process, and only if it is used. PyTorch keeps this key for deferred initialisation and has no use of
  /// it. Not in the constructor: compilers differ in how they name what is static there, and a program may mix them.
  static void register_once() {
    static const auto registered = c10::Dispatcher::singleton().registerFallback(
        c10::DispatchKey::DeferredInit, c10::KernelFunction::makeFromBoxedFunction<&detail::call_on_meta>(),
        "sealift::train::MetaDevice");
  }

  c10::impl::IncludeDispatchKeyGuard include_;
};

}  // namespace sealift::train
