// SPDX-License-Identifier: Apache-2.0
// Ranks as a grid, replicate x shard: the ranks of a row share one copy of the model, those of a column hold the same
// part of it.
// It alone tells ddp (N,1), fsdp (1,N) and hsdp (R,S) apart; the rest of the core reads the grid, never the method.
// Pure arithmetic, so that a plan can be made for a world that does not exist yet.
#pragma once

#include <sealift/train/policy.hpp>

namespace sealift::train {

/// A world of `replicate * shard` ranks. Neighbours shard together, since they are the likeliest to share a host.
struct Mesh {
  std::int64_t replicate = 1;
  std::int64_t shard = 1;

  std::int64_t world_size() const { return replicate * shard; }
  std::int64_t shard_rank(std::int64_t rank) const { return rank % shard; }      ///< which part of a flat `rank` holds
  std::int64_t replicate_rank(std::int64_t rank) const { return rank / shard; }  ///< which copy `rank` belongs to

  bool operator==(const Mesh&) const = default;
};

/// The mesh that `policy` asks for in a world of `world_size` ranks; throws when the two do not fit.
inline Mesh make_mesh(const Policy& policy, std::int64_t world_size) {
  TORCH_CHECK(world_size >= 1, "world size is ", world_size, "; expected at least 1");
  TORCH_CHECK(policy.shard_size == 0 || policy.method == ParallelMethod::Hsdp, "shard_size is ", policy.shard_size,
              " with parallel_method ", to_string(policy.method), "; it belongs to hsdp only");
  switch (policy.method) {
    case ParallelMethod::None:
      TORCH_CHECK(world_size == 1, "parallel_method none in a world of ", world_size,
                  " ranks would train as many models; use ddp, fsdp or hsdp");
      return {1, 1};
    case ParallelMethod::Ddp:
      return {world_size, 1};
    case ParallelMethod::Fsdp:
      return {1, world_size};
    case ParallelMethod::Hsdp:
      TORCH_CHECK(policy.shard_size >= 1 && world_size % policy.shard_size == 0, "hsdp: shard_size is ",
                  policy.shard_size, " in a world of ", world_size, " ranks; it must divide the world");
      return {world_size / policy.shard_size, policy.shard_size};
  }
  TORCH_CHECK(false, "unknown parallel method");
}

}  // namespace sealift::train
