// SPDX-License-Identifier: Apache-2.0
// names.hpp: each name of another project sets what it means there, and any other is refused with a list of all.
// A wrapping strategy is held to the maker that it stands for, by the units that both make of one model (tall.hpp).
#include "tests/train/tall.hpp"

using namespace sealift::test;

namespace {

Paths paths_of_strategy(const char* name, std::int64_t blocks = 0, std::int64_t min_numel = 0) {
  auto policy = fsdp();
  set_wrapping_strategy(policy, name, blocks, min_numel);
  return paths_of(policy);
}

}  // namespace

TEST_CASE("sharding strategies of FSDP1 are understood by what they keep") {
  const auto meaning = [](const char* name) {
    Policy policy;
    set_sharding_strategy(policy, name);
    return std::pair(policy.method, policy.reshard_after_forward);
  };
  CHECK((meaning("FULL_SHARD") == std::pair(ParallelMethod::Fsdp, true)));
  CHECK((meaning("SHARD_GRAD_OP") == std::pair(ParallelMethod::Fsdp, false)));
  CHECK((meaning("HYBRID_SHARD") == std::pair(ParallelMethod::Hsdp, true)));
  CHECK((meaning("_HYBRID_SHARD_ZERO2") == std::pair(ParallelMethod::Hsdp, false)));
  CHECK((meaning("HYBRID_SHARD_ZERO2") == std::pair(ParallelMethod::Hsdp, false)));
  CHECK(meaning("NO_SHARD").first == ParallelMethod::Ddp);
  CHECK_THROWS_WITH(meaning("ZERO"), doctest::Contains("sharding strategy is 'ZERO'; use one of FULL_SHARD, SHARD_"));
}

TEST_CASE("OLMo's wrapping strategies and Accelerate's are the makers of the same name") {
  CHECK(paths_of_strategy("by_block") == paths_of(by_block()));
  CHECK(paths_of_strategy("by_block_and_size") == paths_of(either(by_block(), by_size(0))));
  CHECK(paths_of_strategy("by_block_and_size", 0, 801) == paths_of(either(by_block(), by_size(801))));
  CHECK(paths_of_strategy("by_block_group", 2) == paths_of(by_block_group(2)));
  CHECK(paths_of_strategy("by_block_group_and_size", 3) == paths_of(either(by_block_group(3), by_size(0))));
  CHECK(paths_of_strategy("size_based", 0, 500) == Paths{"", "tokens", "head"});
  CHECK(paths_of_strategy("size_based") == Paths{""});
  CHECK(paths_of_strategy("one_in_two") == Paths{"", "block0", "block2", "block4"});
  CHECK(paths_of_strategy("one_in_three") == Paths{"", "block0", "block3"});
  CHECK(paths_of_strategy("one_in_four") == Paths{"", "block0", "block4"});
  CHECK(paths_of_strategy("one_in_five") == Paths{"", "block0"});
  CHECK(paths_of_strategy("one_in_k", 4) == Paths{"", "block0", "block4"});
  CHECK(paths_of_strategy("root_only") == Paths{""});
  CHECK(paths_of_strategy("TRANSFORMER_BASED_WRAP") == paths_of(by_block()));
  CHECK(paths_of_strategy("SIZE_BASED_WRAP", 0, 500) == Paths{"", "tokens", "head"});
  CHECK(paths_of_strategy("NO_WRAP") == Paths{""});
}

TEST_CASE("a wrapping strategy that is unknown, lacks its number of blocks or has one too many is refused") {
  CHECK_THROWS_WITH(paths_of_strategy("by_moon"), doctest::Contains("use one of by_block, "));
  CHECK_THROWS_WITH(paths_of_strategy("by_block_group"), doctest::Contains("by_block_group with 0 blocks per unit"));
  CHECK_THROWS_WITH(paths_of_strategy("one_in_k", -1), doctest::Contains("give at least 1"));
  CHECK_THROWS_WITH(paths_of_strategy("by_block", 2),
                    doctest::Contains("2 blocks per unit are not what wrapping strategy by_block means"));
  CHECK_THROWS_WITH(paths_of_strategy("one_in_two", 3), doctest::Contains("use by_block_group or one_in_k"));
  auto policy = fsdp();
  CHECK_THROWS(set_wrapping_strategy(policy, "by_block_group"));
  CHECK(paths_of(policy) == paths_of(by_block()));  // as it was
}

TEST_CASE("OLMo's precisions: mixed reduces in fp32, pure does not, both cast buffers") {
  CHECK((parse_precision("fp32") == MixedPrecision{}));
  const auto mixed = parse_precision("mixed"), pure = parse_precision("pure", at::kHalf);
  CHECK(mixed.param_dtype == at::kBFloat16);
  CHECK(mixed.reduce_dtype == at::kFloat);
  CHECK(mixed.buffer_dtype == at::kBFloat16);
  CHECK(pure.param_dtype == at::kHalf);
  CHECK(pure.reduce_dtype == at::kHalf);
  CHECK(pure.buffer_dtype == at::kHalf);
  CHECK_THROWS_WITH(parse_precision("half"), doctest::Contains("use one of fp32, mixed, pure"));
}

TEST_CASE("backward prefetch is on or off by FSDP1's names, and BACKWARD_POST is refused with the reason") {
  Policy policy{.backward_prefetch = 3};
  set_backward_prefetch(policy, "BACKWARD_PRE");
  CHECK(policy.backward_prefetch == 3);
  set_backward_prefetch(policy, "NO_PREFETCH");
  CHECK(policy.backward_prefetch == 0);
  set_backward_prefetch(policy, "BACKWARD_PRE");
  CHECK(policy.backward_prefetch == 1);
  set_backward_prefetch(policy, "NONE");
  CHECK(policy.backward_prefetch == 0);
  CHECK_THROWS_WITH(set_backward_prefetch(policy, "BACKWARD_POST"), doctest::Contains("is not offered"));
  CHECK_THROWS_WITH(set_backward_prefetch(policy, "PRE"), doctest::Contains("use one of BACKWARD_PRE, NONE"));
}

TEST_CASE("OLMo's grad_sync_mode says with which micro-batches gradients are summed over ranks, over 2 and 2x2 ranks") {
  const auto bytes = [](Policy policy, std::int64_t ranks, const char* mode) {
    set_grad_sync_mode(policy, mode);
    const auto outcome = train_on_ranks(ranks, policy, {.micro_batches = 3, .set_micro_batch = true});
    check_same(outcome, one_process());
    return outcome.traffic.all_reduce.bytes;
  };
  CHECK(bytes(ddp(), 2, "micro_batch") == 3 * bytes(ddp(), 2, "batch"));
  CHECK(bytes(hsdp(2), 4, "micro_batch") == 3 * bytes(hsdp(2), 4, "batch"));
  Policy policy;
  CHECK_THROWS_WITH(set_grad_sync_mode(policy, "step"), doctest::Contains("use one of batch, micro_batch"));
}

TEST_CASE("ZeRO's stages reduce and gather as often as DeepSpeed's, and train as one process does, over 2 ranks") {
  const auto sent = [](const char* stage, std::int64_t micro_batches = 2) {
    Policy policy;
    set_zero_stage(policy, stage);
    const auto outcome = train_on_ranks(2, policy, {.micro_batches = micro_batches, .set_micro_batch = true});
    check_same(outcome, one_process());
    return outcome.traffic;
  };
  const auto ddp = sent("zero0"), zero1 = sent("zero1"), zero2 = sent("zero2"), zero3 = sent("zero3");
  CHECK(ddp.all_gather.calls + ddp.reduce_scatter.calls == 0);
  CHECK(zero2.all_gather.bytes == zero1.all_gather.bytes);              // once per step
  CHECK(zero2.reduce_scatter.bytes == 2 * zero1.reduce_scatter.bytes);  // with both micro-batches
  CHECK(zero3.reduce_scatter.bytes == zero2.reduce_scatter.bytes);
  CHECK(zero3.all_gather.bytes > 2 * zero1.all_gather.bytes);          // in both micro-batches, all but the root twice
  CHECK(sent("zero1", 1).all_gather.bytes == zero1.all_gather.bytes);  // whole from forward to backward
  CHECK(sent("zero3", 1).all_gather.bytes > zero1.all_gather.bytes);
  Policy policy;
  CHECK_THROWS_WITH(set_zero_stage(policy, "zero4"), doctest::Contains("'zero4'; use one of zero0, zero1, "));
}

TEST_CASE("ZeRO's offload keeps shards in host memory and changes nothing else") {
  Policy policy, offloaded;
  set_zero_stage(policy, "zero3");
  set_zero_stage(offloaded, "zero3_offload");
  CHECK(offloaded.offload.parameters);
  CHECK_FALSE(policy.offload.parameters);
  CHECK(offloaded.reshard_after_forward == policy.reshard_after_forward);
  policy.offload.gradients = true;
  set_zero_stage(policy, "zero2");
  CHECK(policy.offload.gradients);
}
