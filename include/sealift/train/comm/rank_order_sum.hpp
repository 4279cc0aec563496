// SPDX-License-Identifier: Apache-2.0
// The sum of what ranks have sent, on the CPU: added in rank order, so that every rank gets the same bits.
#pragma once

#include <torch/torch.h>
#include <sealift/train/bodies.hpp>

namespace sealift::train::detail {

/// sum [n] = own [n] of rank `rank` plus theirs [W - 1, n] of the others, fp16 and bf16 in fp32 and rounded once. In
/// pieces that stay in the cache.
void add_in_rank_order(const at::Tensor& sum, const at::Tensor& own, const at::Tensor& theirs, std::int64_t rank);

}  // namespace sealift::train::detail

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/comm/rank_order_sum_inl.hpp>
#endif
