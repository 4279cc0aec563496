// SPDX-License-Identifier: Apache-2.0
// Tensors that hold nothing: reading or writing one throws a given message.
// `flat_param` lets parameters point to one while they are sharded, `flat_gradient` puts one where a gradient is not.
// Without them a kernel would read freed memory, and a loop that clips by `parameter.grad()` would silently do nothing.
#pragma once

#include <torch/torch.h>

#include <string>
#include <utility>

namespace sealift::train::detail {

/// A storage that claims `bytes`, so that views of it can be made, and has no memory; an access throws `message`.
inline c10::Storage guard_storage(at::Device device, std::size_t bytes, std::string message) {
  c10::Storage storage(c10::Storage::use_byte_size_t{}, bytes, at::DataPtr(nullptr, device), nullptr,
                       /*resizable=*/false);
  storage.unsafeGetStorageImpl()->release_data_and_set_meta_custom_data_ptr_error_msg_(std::move(message));
  return storage;
}

/// A tensor of the shape, dtype and device of `like` over a guard storage.
inline at::Tensor guard_tensor(const at::Tensor& like, const c10::Storage& storage) {
  auto tensor = torch::empty({0}, like.options().requires_grad(false));
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(like.sizes());
  tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(storage);
  return tensor;
}

}  // namespace sealift::train::detail
