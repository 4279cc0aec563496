// SPDX-License-Identifier: Apache-2.0
// What each rank sends, and so what must come.
// Beside the measurements of right collectives and of pairs.
// Computed here from the numbers of the ranks by plan.hpp, never from what another rank said.
#pragma once

#include <ATen/ATen.h>

#include <string>

namespace sealift::verify {

/// Of wrong elements so many are kept for a rank.
inline constexpr std::size_t kWrongElementsKept = 32;

/// "fp32", "bf16", "fp16" or "int64".
at::ScalarType dtype_named(const std::string& name);

/// int64 [n]: what `rank` sends from its element `first` on, where data only moves.
at::Tensor moved(std::int64_t rank, std::int64_t first, std::int64_t n, const std::string& dtype);

/// int64 [n]: what `rank` of `ranks` adds, and what all of them add up to.
at::Tensor added(std::int64_t rank, std::int64_t ranks, std::int64_t first, std::int64_t n, const std::string& dtype);
at::Tensor sum_of_all(std::int64_t ranks, std::int64_t first, std::int64_t n, const std::string& dtype);

}  // namespace sealift::verify
