// SPDX-License-Identifier: Apache-2.0
// A product that adds itself to a sum, of a wider dtype too: no tensor of its own, no second pass over the sum.
// `flat_gradient` adds gradients of weights so.
#pragma once

#include <torch/torch.h>
#include <sealift/train/bodies.hpp>

namespace sealift::train::detail {

/// Whether one operation of `matrix`'s device adds products of such matrices to a sum of `sum`'s dtype. One dtype does
/// everywhere; fp16 and bf16 into fp32 (ATen's addmm.dtype_out) on CUDA alone and from LibTorch 2.10 on: before, it
/// took no fp32 sum.
bool adds_products(const at::Tensor& matrix, at::ScalarType sum);

/// sum = beta · sum + alpha · left · right; with beta 0 nothing of `sum` is read. Needs `adds_products`.
void add_product(at::Tensor& sum, const at::Tensor& left, const at::Tensor& right, double beta, double alpha);

}  // namespace sealift::train::detail

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/flat/add_product_inl.hpp>
#endif
