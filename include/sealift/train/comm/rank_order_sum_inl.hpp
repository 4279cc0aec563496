// SPDX-License-Identifier: Apache-2.0
// The bodies of rank_order_sum.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/comm/rank_order_sum.hpp>

#include <algorithm>

namespace sealift::train {

namespace detail {

SEALIFT_BODY void add_in_rank_order(const at::Tensor& sum, const at::Tensor& own, const at::Tensor& theirs,
                                    std::int64_t rank) {
  at::NoGradGuard no_grad;
  const bool widen = sum.scalar_type() == at::kHalf || sum.scalar_type() == at::kBFloat16;
  constexpr std::int64_t kPiece = 1 << 16;
  for (std::int64_t begin = 0; begin < sum.numel(); begin += kPiece) {
    const auto n = std::min(kPiece, sum.numel() - begin);
    const auto term = [&](std::int64_t r) {
      return (r == rank ? own : theirs[r < rank ? r : r - 1]).narrow(0, begin, n);
    };
    auto out = sum.narrow(0, begin, n);
    if (theirs.size(0) == 1) {
      at::add_out(out, term(0), term(1));
      continue;
    }
    auto total = widen ? term(0).to(at::kFloat) : at::add(term(0), term(1));
    for (std::int64_t r = widen ? 1 : 2; r <= theirs.size(0); ++r) total.add_(term(r));
    out.copy_(total);
  }
}

}  // namespace detail

}  // namespace sealift::train
