// SPDX-License-Identifier: Apache-2.0
// The bodies of names.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/names.hpp>

#include <algorithm>

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

SEALIFT_BODY void set_sharding_strategy(Policy& policy, std::string_view name) {
  std::tie(policy.method, policy.reshard_after_forward) =
      detail::meaning_of<std::pair<ParallelMethod, bool>>({{"FULL_SHARD", {ParallelMethod::Fsdp, true}},
                                                           {"SHARD_GRAD_OP", {ParallelMethod::Fsdp, false}},
                                                           {"HYBRID_SHARD", {ParallelMethod::Hsdp, true}},
                                                           {"_HYBRID_SHARD_ZERO2", {ParallelMethod::Hsdp, false}},
                                                           {"HYBRID_SHARD_ZERO2", {ParallelMethod::Hsdp, false}},
                                                           {"NO_SHARD", {ParallelMethod::Ddp, true}}},
                                                          name, "sharding strategy");
}

SEALIFT_BODY void set_zero_stage(Policy& policy, std::string_view name) {
  const auto stage = detail::meaning_of<int>(
      {{"zero0", 0}, {"zero1", 1}, {"zero2", 2}, {"zero3", 3}, {"zero2_offload", 2}, {"zero3_offload", 3}}, name,
      "ZeRO stage");
  policy.method = stage == 0 ? ParallelMethod::Ddp : ParallelMethod::Fsdp;
  policy.reshard_after_forward = stage == 3;
  policy.keep_gathered = stage < 3 ? KeepGathered::Always : KeepGathered::Never;
  policy.reduce_every_micro_batch = stage >= 2;
  policy.offload.parameters |= name.ends_with("_offload");
}

SEALIFT_BODY void set_wrapping_strategy(Policy& policy, std::string_view name, std::int64_t blocks,
                                        std::int64_t min_numel) {
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

SEALIFT_BODY MixedPrecision parse_precision(std::string_view name, at::ScalarType dtype) {
  return detail::meaning_of<MixedPrecision>(
      {{"fp32", {}},
       {"mixed", {.param_dtype = dtype, .reduce_dtype = at::kFloat, .buffer_dtype = dtype}},
       {"pure", {.param_dtype = dtype, .reduce_dtype = dtype, .buffer_dtype = dtype}}},
      name, "precision");
}

SEALIFT_BODY void set_backward_prefetch(Policy& policy, std::string_view name) {
  TORCH_CHECK(name != "BACKWARD_POST", "BACKWARD_POST mispredicts nested modules and is not offered; use BACKWARD_PRE");
  const bool pre = detail::meaning_of<bool>({{"BACKWARD_PRE", true}, {"NONE", false}, {"NO_PREFETCH", false}}, name,
                                            "backward prefetch");
  policy.backward_prefetch = pre ? std::max<std::int64_t>(1, policy.backward_prefetch) : 0;
}

SEALIFT_BODY void set_grad_sync_mode(Policy& policy, std::string_view name) {
  const bool every = detail::meaning_of<bool>({{"batch", false}, {"micro_batch", true}}, name, "grad_sync_mode");
  policy.reduce_every_micro_batch = every;
  policy.defer_all_reduce = !every;
}

}  // namespace sealift::train
