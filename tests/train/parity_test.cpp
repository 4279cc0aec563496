// SPDX-License-Identifier: Apache-2.0
// The engine against the same model on one process: losses, parameters, and what went over the wire.
// The evidence that the core is correct. Ranks are threads over Gloo; each case says how many.
// Counts and bytes are held to formulas, so one collective too many is a failure, not a slow run.
#include "tests/train/fixture.hpp"

using namespace sealift::test;

namespace {

/// Elements of the flats that are reduced, and of all flats: of the units that are called.
std::pair<std::int64_t, std::int64_t> flat_elements(const Policy& policy, std::int64_t ranks) {
  std::pair<std::int64_t, std::int64_t> result;
  on_ranks(ranks, [&](const World& world) {
    Shardable<Net> net;
    const auto parallel = parallelize(*net, make_groups(world, make_mesh(policy, ranks)), policy);
    if (world.rank != 0) return;
    for (const auto* bucket : parallel.reducer().buckets()) result.first += bucket->layout().padded_numel();
    for (const auto& unit : parallel.units()) {
      for (const auto& flat : unit->flats()) {
        if (unit->path() == "spare") continue;
        result.second += flat->layout().padded_numel();
        if (flat->trainable()) result.first += flat->layout().padded_numel();
      }
    }
  });
  return result;
}

}  // namespace

TEST_CASE("the loss falls on one process, so that parity means something") {
  CHECK(one_process().losses.back() < 0.9 * one_process().losses.front());
}

TEST_CASE("ddp trains as one process does") {
  for (std::int64_t ranks : {2, 3, 4}) {
    CAPTURE(ranks);
    check_same(train_on_ranks(ranks, ddp()), one_process());
  }
}

TEST_CASE("fsdp trains as one process does") {
  for (std::int64_t ranks : {2, 3, 4}) {
    CAPTURE(ranks);
    check_same(train_on_ranks(ranks, fsdp()), one_process());
  }
}

TEST_CASE("hsdp trains as one process does, over 2x2 ranks") {
  check_same(train_on_ranks(4, hsdp(2)), one_process());
}

TEST_CASE("neither resharding nor wrapping changes the numbers, over 2 ranks") {
  auto policy = fsdp();
  policy.reshard_after_forward = false;
  check_same(train_on_ranks(2, policy), one_process());
  policy.wrap = root_only();
  check_same(train_on_ranks(2, policy), one_process());
}

TEST_CASE("one rank computes every bit of the plain model and makes no collective") {
  for (const auto& policy : {ddp(), fsdp(), hsdp(1)}) {
    const auto outcome = train_on_ranks(1, policy);
    CHECK(outcome.losses == one_process().losses);
    for (std::size_t i = 0; i < outcome.parameters.size(); ++i) {
      CHECK(outcome.parameters[i].equal(one_process().parameters[i]));
    }
    CHECK(outcome.traffic == TrafficReport{});
  }
}

TEST_CASE("the same run twice gives the same bits, over 3 ranks") {
  const auto first = train_on_ranks(3, fsdp());
  const auto second = train_on_ranks(3, fsdp());
  CHECK(first.losses == second.losses);
}

TEST_CASE("micro-batches add up to the whole batch and are reduced once") {
  const Loop accumulate{.micro_batches = 3};
  for (const auto& policy : {ddp(), fsdp(), hsdp(2)}) {
    const auto outcome = train_on_ranks(4, policy, accumulate);
    check_same(outcome, one_process());
    const std::int64_t steps = 10, units = NetImpl::kLayers + 1;
    const bool sharded = policy.method != ParallelMethod::Ddp, replicated = policy.method != ParallelMethod::Fsdp;
    CHECK(outcome.traffic.reduce_scatter.calls == (sharded ? units * steps : 0));
    // ddp's whole model fits its first bucket of 1 MiB.
    CHECK(outcome.traffic.all_reduce.calls == (!replicated ? 0 : sharded ? units * steps : steps));
  }
}

TEST_CASE("gradients reduced with every micro-batch add up to the same, over 2 ranks") {
  const auto outcome = train_on_ranks(2, fsdp(), {.micro_batches = 3, .sync_every_micro_batch = true});
  check_same(outcome, one_process());
  CHECK(outcome.traffic.reduce_scatter.calls == (NetImpl::kLayers + 1) * 3 * 10);
}

TEST_CASE("gradients that the optimizer zeroes instead of dropping give the same, over 2 ranks") {
  // An unused parameter then still has no gradient.
  for (const auto& policy : {ddp(), fsdp()})
    check_same(train_on_ranks(2, policy, {.set_to_none = false}), one_process());
}

TEST_CASE("a block that is called twice in a forward trains as on one process, over 3 ranks") {
  const Loop twice{.repeats = 2};
  const auto plain = train({}, {.method = ParallelMethod::None}, twice);
  CHECK(plain.losses != one_process().losses);
  check_same(train_on_ranks(3, fsdp(), twice), plain);
  check_same(train_on_ranks(3, ddp(), twice), plain);
}

TEST_CASE("clipping by the global norm gives the same on any mesh") {
  const Loop clipped{.clip = 0.05};
  const auto plain = train({}, {.method = ParallelMethod::None}, clipped);
  CHECK(plain.losses.back() != one_process().losses.back());
  check_same(train_on_ranks(2, ddp(), clipped), plain);
  check_same(train_on_ranks(3, fsdp(), clipped), plain);
  check_same(train_on_ranks(4, hsdp(2), clipped), plain);
}

// n blocks and the root, M micro-batches per step. A block has two flats here, trainable and frozen, the root one; both
// are gathered, one is reduced.
TEST_CASE("fsdp gathers blocks twice and the root once per micro-batch, and reduces each once per step") {
  const std::int64_t n = NetImpl::kLayers, M = 2, steps = 3;
  const auto outcome = train_on_ranks(2, fsdp(), {.steps = steps, .micro_batches = M});
  CHECK(outcome.traffic.all_gather.calls == (2 * 2 * n + 1) * M * steps);
  CHECK(outcome.traffic.reduce_scatter.calls == (n + 1) * steps);
  CHECK(outcome.traffic.all_reduce.calls == 0);
  CHECK(outcome.traffic.broadcast.calls == 0);
}

TEST_CASE("without resharding after forward every unit is gathered once per micro-batch") {
  const std::int64_t n = NetImpl::kLayers, M = 2, steps = 3;
  auto policy = fsdp();
  policy.reshard_after_forward = false;
  const auto outcome = train_on_ranks(2, policy, {.steps = steps, .micro_batches = M});
  CHECK(outcome.traffic.all_gather.calls == (2 * n + 1) * M * steps);
  CHECK(outcome.traffic.reduce_scatter.calls == (n + 1) * steps);
}

TEST_CASE("ddp gathers nothing and all-reduces each bucket once per step, 2f of its gradients") {
  const std::int64_t steps = 3;
  const auto outcome = train_on_ranks(4, ddp(), {.steps = steps, .micro_batches = 3});
  CHECK(outcome.traffic.all_gather.calls == 0);
  CHECK(outcome.traffic.reduce_scatter.calls == 0);
  CHECK(outcome.traffic.all_reduce.calls == steps);
  CHECK(outcome.traffic.all_reduce.bytes == 2 * 4 * flat_elements(ddp(), 4).first * 3 / 4 * steps);
}

TEST_CASE("sending sync last costs fsdp one reduction of f of its gradients, without resharding one gather each") {
  auto policy = fsdp();
  policy.reshard_after_forward = false;
  const auto outcome = train_on_ranks(4, policy, {.steps = 1, .micro_batches = 3});
  const auto [gradients, all] = flat_elements(policy, 4);
  CHECK(outcome.traffic.reduce_scatter.bytes == 4 * gradients * 3 / 4);
  CHECK(outcome.traffic.all_gather.bytes == 3 * 4 * all * 3 / 4);
}

TEST_CASE("hsdp all-reduces only its shard over the copies") {
  const auto outcome = train_on_ranks(4, hsdp(2), {.steps = 1});
  const auto [gradients, all] = flat_elements(hsdp(2), 4);
  CHECK(outcome.traffic.reduce_scatter.bytes == 4 * gradients / 2);
  CHECK(outcome.traffic.all_reduce.bytes == 2 * 4 * (gradients / 2) / 2);
}
