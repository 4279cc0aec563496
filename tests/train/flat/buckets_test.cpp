// SPDX-License-Identifier: Apache-2.0
// buckets.hpp: the buckets of DDP, and the order in which they are filled.
// Sizes are held to c10d's own function; orders are written out.
// No rank and no gradient is needed here; reducer_test.cpp is about when buckets are reduced.
#include <sealift/train/flat/buckets.hpp>

#include <torch/torch.h>

#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <doctest/doctest.h>

using namespace sealift::train;

TEST_CASE("buckets are those that c10d assigns") {
  std::vector<at::Tensor> tensors;
  std::vector<std::int64_t> bytes;
  for (const std::int64_t numel : {1, 300, 5000, 7, 2000, 2000, 2000, 1, 1, 90000, 3}) {
    tensors.push_back(torch::zeros({numel}));
    bytes.push_back(numel * 4);
  }
  for (const std::int64_t first : {1, 1200, 1 << 20}) {
    for (const std::int64_t other : {4, 16000, 1 << 20}) {
      const auto [expected, limits] = c10d::compute_bucket_assignment_by_size(
          tensors, {static_cast<std::size_t>(first), static_cast<std::size_t>(other)});
      auto got = assign_buckets(bytes, first, other);
      CHECK(got == expected);
    }
  }
}

TEST_CASE("buckets are filled in reverse order of the model, or as gradients came, each once") {
  using Order = std::vector<std::int64_t>;
  CHECK(bucket_order({}, 4) == Order{3, 2, 1, 0});
  CHECK(bucket_order({1, 3, 1}, 4) == Order{1, 3, 2, 0});
  CHECK(bucket_order({}, 0).empty());
}
