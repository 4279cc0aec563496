// SPDX-License-Identifier: Apache-2.0
// The elements by their rank and place.
// See known_answers.hpp.
// Whole numbers, so that no tolerance is needed.
#include "verify/communication/known_answers.hpp"

#include "verify/communication/plan.hpp"

namespace sealift::verify {

at::ScalarType dtype_named(const std::string& name) {
  if (name == "bf16") return at::kBFloat16;
  if (name == "fp16") return at::kHalf;
  return name == "int64" ? at::kLong : at::kFloat;
}

at::Tensor moved(std::int64_t rank, std::int64_t first, std::int64_t n, const std::string& dtype) {
  return at::arange(first, first + n, at::kLong)
      .mul_(kOfIndex)
      .add_(rank * kOfRank)
      .remainder_(modulus_of_moves(dtype));
}

at::Tensor added(std::int64_t rank, std::int64_t ranks, std::int64_t first, std::int64_t n, const std::string& dtype) {
  const auto modulus = modulus_of_sums(dtype, ranks);
  auto index = at::arange(first, first + n, at::kLong);
  if (modulus > 1) return index.mul_(kOfIndex).add_(rank * kOfRank).remainder_(modulus);
  return index.add_(rank).remainder_(one_in(dtype, ranks)).eq(0).to(at::kLong);
}

at::Tensor sum_of_all(std::int64_t ranks, std::int64_t first, std::int64_t n, const std::string& dtype) {
  auto sum = at::zeros({n}, at::kLong);
  for (std::int64_t rank = 0; rank < ranks; ++rank) sum += added(rank, ranks, first, n, dtype);
  return sum;
}

}  // namespace sealift::verify
