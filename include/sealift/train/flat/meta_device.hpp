// SPDX-License-Identifier: Apache-2.0
// Models without memory: under `MetaDevice` a module's parameters have shapes and dtypes only, on the meta device.
// Before `parallelize`, which gives each rank the memory of its part and the values of a `Source`.
// LibTorch has no default device that one could set, so the dispatcher is asked to call us before every operator.
#pragma once

#include <torch/torch.h>
#include <sealift/train/bodies.hpp>

namespace sealift::train {

namespace detail {

/// `tensor` = `data`, whatever device it was on, and stays the same tensor for modules, ties and autograd.
void replace_data(at::Tensor tensor, const at::Tensor& data);

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
  static void register_once();

  c10::impl::IncludeDispatchKeyGuard include_;
};

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/flat/meta_device_inl.hpp>
#endif
