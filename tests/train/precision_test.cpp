// SPDX-License-Identifier: Apache-2.0
// Mixed precision and offload: the dtype and device of tensors while they are used, and the numbers that result.
// bf16 follows fp32 within 2e-2 of the loss; values that are moved but not rounded must agree to fp32's 1e-5.
// On a machine without a GPU host and device are the same memory, but every copy is made nevertheless.
#include "tests/train/fixture.hpp"

using namespace sealift::test;

namespace {

/// Losses within `tolerance`, relative.
void check_near(const Outcome& got, const Outcome& expected, double tolerance) {
  for (std::size_t i = 0; i < got.losses.size(); ++i) {
    CAPTURE(i);
    CHECK(got.losses[i] == doctest::Approx(expected.losses[i]).epsilon(tolerance));
  }
}

Policy with(ParallelMethod method, MixedPrecision precision) {
  return {.method = method, .shard_size = method == ParallelMethod::Hsdp ? 2 : 0, .precision = precision};
}

}  // namespace

TEST_CASE("computing in bf16 over fp32 shards follows fp32, however the model is spread") {
  for (const auto& precision : {parse_precision("mixed"), parse_precision("pure")}) {
    check_near(train_on_ranks(1, with(ParallelMethod::Fsdp, precision)), one_process(), 2e-2);
    check_near(train_on_ranks(2, with(ParallelMethod::Fsdp, precision)), one_process(), 2e-2);
    check_near(train_on_ranks(2, with(ParallelMethod::Ddp, precision)), one_process(), 2e-2);
    check_near(train_on_ranks(4, with(ParallelMethod::Hsdp, precision)), one_process(), 2e-2);
  }
}

TEST_CASE(
    "reducing in another dtype alone works too, and fp16 is divided before and after the sum, over 2 and 3 ranks") {
  for (const auto dtype : {at::kBFloat16, at::kHalf}) {
    for (const auto method : {ParallelMethod::Ddp, ParallelMethod::Fsdp}) {
      check_near(train_on_ranks(2, with(method, {.reduce_dtype = dtype})), one_process(), 2e-2);
      check_near(train_on_ranks(3, with(method, {.reduce_dtype = dtype})), one_process(), 2e-2);
    }
  }
}

TEST_CASE("reducing in fp64 shows that accumulation happens in the reduce dtype, over 3 ranks") {
  const Loop accumulate{.micro_batches = 4};
  check_same(train_on_ranks(3, with(ParallelMethod::Fsdp, {.reduce_dtype = at::kDouble}), accumulate), one_process());
}

TEST_CASE(
    "shards and their gradients stay fp32, parameters in use and inputs are bf16, outputs as asked, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    auto policy = with(ParallelMethod::Fsdp, parse_precision("mixed"));
    policy.precision.output_dtype = at::kDouble;
    policy.wrap = either(by_path("layer1", {.precision = MixedPrecision{}}), by_block());
    Shardable<Net> net;
    auto parallel = parallelize(*net, make_groups(world, make_mesh(policy, world.size)), policy);
    int seen = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      net->layers[i]->probe = [&, i] {
        ++seen;
        CHECK((net->layers[i]->parameters()[0].scalar_type() == (i == 1 ? at::kFloat : at::kBFloat16)));
      };
    }
    const auto logits = net(batch_of(0).first);
    CHECK((logits.scalar_type() == at::kDouble));
    CHECK(seen == 3);
    logits.sum().backward();
    for (const auto& [name, shard] : parallel.named_shards()) {
      CHECK((shard.scalar_type() == at::kFloat));
      if (shard.grad().defined()) CHECK((shard.grad().scalar_type() == at::kFloat));
    }
  });
}

TEST_CASE("bf16 halves what a gather sends, and a reduction in fp32 sends what it did, over 2 ranks") {
  const auto bytes = [](const MixedPrecision& precision) {
    return train_on_ranks(2, with(ParallelMethod::Fsdp, precision), {.steps = 1}).traffic;
  };
  const auto full = bytes({}), mixed = bytes(parse_precision("mixed")), pure = bytes(parse_precision("pure"));
  CHECK(mixed.all_gather.bytes * 2 == full.all_gather.bytes);
  CHECK(mixed.reduce_scatter.bytes == full.reduce_scatter.bytes);
  CHECK(pure.reduce_scatter.bytes * 2 == full.reduce_scatter.bytes);
}

TEST_CASE("floating inputs are cast to the unit's dtype only when asked, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    auto policy = with(ParallelMethod::Fsdp, parse_precision("mixed"));
    policy.precision.cast_forward_inputs = false;
    Shardable<torch::nn::Linear> linear(4, 4);
    auto parallel = parallelize(*linear, make_groups(world, make_mesh(policy, world.size)), policy);
    CHECK_THROWS(linear(torch::ones({2, 4})));
    CHECK((linear(torch::ones({2, 4}, at::kBFloat16)).scalar_type() == at::kBFloat16));
  });
}

TEST_CASE("each kind of offload, alone and together, trains as one process does") {
  const Loop plain, accumulate{.micro_batches = 3}, each{.micro_batches = 3, .sync_every_micro_batch = true};
  for (const auto& offload : {Offload{.parameters = true}, Offload{.gradients = true},
                              Offload{.parameters = true, .gradients = true, .optimizer_state = true}}) {
    for (const auto method : {ParallelMethod::Fsdp, ParallelMethod::Ddp, ParallelMethod::Hsdp}) {
      Policy policy{.method = method, .shard_size = method == ParallelMethod::Hsdp ? 2 : 0, .offload = offload};
      for (const auto& loop : {plain, accumulate, each}) {
        CAPTURE(offload.parameters);
        CAPTURE(std::string(to_string(method)));
        CAPTURE(loop.micro_batches);
        CAPTURE(loop.sync_every_micro_batch);
        check_same(train_on_ranks(4, policy, loop), one_process());
      }
    }
  }
}

TEST_CASE("offloaded gradients are back when backward returns, so that a loop need not ask for them, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    const auto gradients = [&](const Offload& offload) {
      const Policy policy{.method = ParallelMethod::Fsdp, .offload = offload};
      Shardable<Net> net;
      auto parallel = parallelize(*net, make_groups(world, make_mesh(policy, world.size)), policy);
      net(batch_of(0).first).sum().backward();
      std::vector<at::Tensor> found;
      for (const auto& shard : parallel.shards()) found.push_back(shard.grad());
      return found;
    };
    const auto plain = gradients({}), offloaded = gradients({.gradients = true});
    for (std::size_t i = 0; i < plain.size(); ++i) {
      REQUIRE(plain[i].defined() == offloaded[i].defined());
      if (plain[i].defined()) CHECK(plain[i].equal(offloaded[i]));
    }
  });
}
