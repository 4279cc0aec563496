// SPDX-License-Identifier: Apache-2.0
// Whether units stay gathered between the micro-batches of a step: what that costs, and whether memory is there for it.
// `parallelize` asks once, after planning the units; arithmetic, and one look at free memory.
// Kept, a step of M micro-batches gathers and reduces each unit once; freed, it gathers (2n + root) M times but holds a
// shard and a few units only. Who does not say which gets what fits, and never more than ddp would hold.
// Mirrored by trainer/plan/memory.cpp (keep_fits): change both.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/unit_plan.hpp>

namespace sealift::train {

/// Bytes per rank.
struct KeepCost {
  std::int64_t kept =
      0;  ///< whole parameters and gradients beyond their shards, from the first micro-batch to the last
  std::int64_t held = 0;  ///< parameters, gradients and AdamW's two moments at the peak of a step that keeps
  std::int64_t ddp = 0;   ///< the same under ddp
};

/// What keeping the units of `plans` costs on a mesh of `shards` ranks that shard. At the peak, where the last backward
/// begins, whole parameters and gradients lie beside shards and moments; shards of gradients come as whole ones go.
KeepCost keep_cost(const std::vector<UnitPlan>& plans, std::int64_t shards);

/// Bytes that are free on `device`; for the CPU, see host::free_memory. 0: unknown.
std::int64_t free_memory(at::Device device);

/// What was chosen, for `Parallel`, and why, for a log.
struct KeepChoice {
  bool keep = false;
  std::string reason;
};

/// Chooses for `policy`, the same on all ranks: what it says, or with `Auto` whether the cost is at most half of the
/// memory that the rank with the least has, `Policy::memory_budget` or what is free, and ddp would hold no less.
/// Ranks on one host share its free memory. Collective over `world`, unless the policy says it.
KeepChoice choose_keep_gathered(const Policy& policy, const KeepCost& cost, Collectives& world, at::Device device);

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/keep_choice_inl.hpp>
#endif
