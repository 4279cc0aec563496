// SPDX-License-Identifier: Apache-2.0
// The settings of `Policy` by the names that FSDP1, Accelerate, OLMo, DeepSpeed and DDP have for them.
// Beside the flow: a program that reads a job file written for one of them calls these; the core reads `Policy` alone.
// Each name sets what it means there; what this core does otherwise is said here, and a name that would mean something
// else here is refused with the names that there are.
//
// Without a function, since they are no setting:
//   DDP's no_sync(), around all micro-batches but the last     Parallel::set_micro_batch, or set_requires_gradient_sync
//   ZeRO++'s zero_hpz_partition_size, FSDP2's int              Policy::reshard_group
//   MiCS's mics_shard_size                                     HYBRID_SHARD with Policy::shard_size
#pragma once

#include <sealift/train/policy.hpp>

#include <algorithm>
#include <tuple>

namespace sealift::train {

namespace detail {

/// The value that `table` has for `name`; throws with the known names when it has none. `what` is what is named.
template <class Value>
Value meaning_of(std::initializer_list<std::pair<std::string_view, Value>> table, std::string_view name,
                 std::string_view what) {
  std::string known;
  for (const auto& each : table) known += (known.empty() ? "" : ", ") + std::string(each.first);
  const auto found = std::find_if(table.begin(), table.end(), [&](const auto& each) { return each.first == name; });
  TORCH_CHECK(found != table.end(), what, " is '", name, "'; use one of ", known);
  return found->second;
}

}  // namespace detail

/// Sets the method and `reshard_after_forward` that FSDP1's ShardingStrategy `name` means; after forward it frees:
///   FULL_SHARD     parameters                          HYBRID_SHARD         parameters, sharded within a group
///   SHARD_GRAD_OP  nothing until backward              _HYBRID_SHARD_ZERO2  nothing until backward, within a group
///   NO_SHARD       nothing, that is ddp                HYBRID_SHARD_ZERO2   Accelerate's spelling
/// A hybrid's group is a host there; here it is `shard_size` ranks.
inline void set_sharding_strategy(Policy& policy, std::string_view name) {
  std::tie(policy.method, policy.reshard_after_forward) =
      detail::meaning_of<std::pair<ParallelMethod, bool>>({{"FULL_SHARD", {ParallelMethod::Fsdp, true}},
                                                           {"SHARD_GRAD_OP", {ParallelMethod::Fsdp, false}},
                                                           {"HYBRID_SHARD", {ParallelMethod::Hsdp, true}},
                                                           {"_HYBRID_SHARD_ZERO2", {ParallelMethod::Hsdp, false}},
                                                           {"HYBRID_SHARD_ZERO2", {ParallelMethod::Hsdp, false}},
                                                           {"NO_SHARD", {ParallelMethod::Ddp, true}}},
                                                          name, "sharding strategy");
}

/// Sets what DeepSpeed's ZeRO stage `name` (as ms-swift names its configurations) means for a step:
///   zero0  ddp
///   zero1  parameters stay whole, gradients are reduced with the last micro-batch
///   zero2  parameters stay whole, gradients are reduced with every micro-batch, so that none are whole in between
///   zero3  parameters are whole only while they are used, gradients as in zero2
/// With `zero2_offload` and `zero3_offload` shards, and so gradients and moments, are in host memory and stepped there.
/// Unlike there, stages 1 and 2 shard parameters between steps: the gather that DeepSpeed makes after the optimizer's
/// step comes with the next forward. The bytes are the same, and less memory is used.
inline void set_zero_stage(Policy& policy, std::string_view name) {
  const auto stage = detail::meaning_of<int>(
      {{"zero0", 0}, {"zero1", 1}, {"zero2", 2}, {"zero3", 3}, {"zero2_offload", 2}, {"zero3_offload", 3}}, name,
      "ZeRO stage");
  policy.method = stage == 0 ? ParallelMethod::Ddp : ParallelMethod::Fsdp;
  policy.reshard_after_forward = stage == 3;
  policy.keep_gathered = stage < 3 ? KeepGathered::Always : KeepGathered::Never;
  policy.reduce_every_micro_batch = stage >= 2;
  policy.offload.parameters |= name.ends_with("_offload");
}

/// Sets `wrap` as OLMo's wrapping strategy `name` means it; `blocks` is its block_group_size, and for one_in_k the k.
/// Its `_and_size` wraps embedding and head; here, every other `Shardable` of at least `min_numel` elements.
/// `root_only` and Accelerate's NO_WRAP are OLMo's null; TRANSFORMER_BASED_WRAP is by_block, since this core knows the
/// classes that a model repeats; SIZE_BASED_WRAP is size_based, whose `min_numel` of 0 means PyTorch's 1e8.
/// Throws when `blocks` is missing, or given where the name has no use for it.
inline void set_wrapping_strategy(Policy& policy, std::string_view name, std::int64_t blocks = 0,
                                  std::int64_t min_numel = 0) {
  const auto k = std::max<std::int64_t>(blocks, 1);
  const auto rest = by_size(min_numel), size_based = min_numel > 0 ? by_size(min_numel) : by_size();
  constexpr bool kCounts = true, kDoesNot = false;
  const auto [wrap, counts] = detail::meaning_of<std::pair<Wrap, bool>>(
      {{"by_block", {by_block(), kDoesNot}},
       {"by_block_and_size", {either(by_block(), rest), kDoesNot}},
       {"by_block_group", {by_block_group(k), kCounts}},
       {"by_block_group_and_size", {either(by_block_group(k), rest), kCounts}},
       {"size_based", {size_based, kDoesNot}},
       {"one_in_two", {one_in(2), kDoesNot}},
       {"one_in_three", {one_in(3), kDoesNot}},
       {"one_in_four", {one_in(4), kDoesNot}},
       {"one_in_five", {one_in(5), kDoesNot}},
       {"one_in_k", {one_in(k), kCounts}},
       {"root_only", {root_only(), kDoesNot}},
       {"TRANSFORMER_BASED_WRAP", {by_block(), kDoesNot}},
       {"SIZE_BASED_WRAP", {size_based, kDoesNot}},
       {"NO_WRAP", {root_only(), kDoesNot}}},
      name, "wrapping strategy");
  TORCH_CHECK(!counts || blocks > 0, "wrapping strategy ", name, " with ", blocks, " blocks per unit; give at least 1");
  TORCH_CHECK(counts || blocks == 0, blocks, " blocks per unit are not what wrapping strategy ", name,
              " means; use by_block_group or one_in_k");
  policy.wrap = wrap;
}

/// OLMo's FSDPPrecision over fp32 shards, with `dtype` for its autocast precision: `fp32` (its null) computes in the
/// shards' dtype, `mixed` computes and keeps buffers in `dtype` and reduces in fp32, `pure` does all three in `dtype`.
inline MixedPrecision parse_precision(std::string_view name, at::ScalarType dtype = at::kBFloat16) {
  return detail::meaning_of<MixedPrecision>(
      {{"fp32", {}},
       {"mixed", {.param_dtype = dtype, .reduce_dtype = at::kFloat, .buffer_dtype = dtype}},
       {"pure", {.param_dtype = dtype, .reduce_dtype = dtype, .buffer_dtype = dtype}}},
      name, "precision");
}

/// Sets FSDP1's BackwardPrefetch `name`: BACKWARD_PRE gathers the next unit before this one's backward; NONE, and
/// Accelerate's NO_PREFETCH, never.
inline void set_backward_prefetch(Policy& policy, std::string_view name) {
  TORCH_CHECK(name != "BACKWARD_POST", "BACKWARD_POST mispredicts nested modules and is not offered; use BACKWARD_PRE");
  const bool pre = detail::meaning_of<bool>({{"BACKWARD_PRE", true}, {"NONE", false}, {"NO_PREFETCH", false}}, name,
                                            "backward prefetch");
  policy.backward_prefetch = pre ? std::max<std::int64_t>(1, policy.backward_prefetch) : 0;
}

/// Sets OLMo's DDPGradSyncMode `name`: `batch` reduces with the last micro-batch, as DDP does with no_sync() around the
/// others; `micro_batch` with every one. There it is ddp's alone; here it is any method's, and hsdp's copies included.
inline void set_grad_sync_mode(Policy& policy, std::string_view name) {
  const bool every = detail::meaning_of<bool>({{"batch", false}, {"micro_batch", true}}, name, "grad_sync_mode");
  policy.reduce_every_micro_batch = every;
  policy.defer_all_reduce = !every;
}

}  // namespace sealift::train
