// SPDX-License-Identifier: Apache-2.0
// What pieces ask of the tensors that they give to kernels: their type, how rows lie, where packs may begin.
// Below the pieces.
#pragma once

#include "trainer/kernels/kernel.hpp"

#include <ATen/core/Tensor.h>

#include <optional>

namespace sealift::trainer::kernels {

/// A kernel for each type of numbers.
struct OfTypes {
  Kernel fp32, bf16, fp16;

  const Kernel& of(at::ScalarType type) const { return type == at::kFloat ? fp32 : type == at::kHalf ? fp16 : bf16; }
};

/// Whether there are kernels for numbers of a type.
inline bool is_taken(at::ScalarType type) {
  return type == at::kFloat || type == at::kBFloat16 || type == at::kHalf;
}

/// Values from a row of the last dimension to the next, if all rows lie equally far apart and have no gaps inside.
inline std::optional<std::int64_t> row_stride(const at::Tensor& tensor) {
  if (tensor.dim() < 1 || (tensor.stride(-1) != 1 && tensor.size(-1) > 1)) return {};
  std::optional<std::int64_t> stride;
  std::int64_t rows = 1;  // of the dimensions so far, from the last
  for (auto i = tensor.dim() - 2; i >= 0; --i) {
    if (tensor.size(i) == 1) continue;
    if (!stride) {
      stride = tensor.stride(i);
    } else if (tensor.stride(i) != *stride * rows) {
      return {};
    }
    rows *= tensor.size(i);
  }
  return stride ? stride : tensor.size(-1);
}

/// Whether packs of so many bytes begin where their size divides the address, in the first row.
inline bool begins_at(const at::Tensor& tensor, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % bytes == 0;
}

}  // namespace sealift::trainer::kernels
