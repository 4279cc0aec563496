// SPDX-License-Identifier: Apache-2.0
// transport.hpp: how gradients are summed in fp16 and bf16, what that sends, and that a sum does not wait for its
// start. The formula is PyTorch's hooks' (cast of g / W, sum, cast back), computed here by hand;
// compression_oracle_test.py holds it to the hooks themselves. Each case says over how many ranks it runs.
#include "tests/train/fixture.hpp"

using namespace sealift::test;

namespace {

Policy compressed(Policy policy, GradientCompression gradients) {
  policy.compression.gradients = gradients;
  return policy;
}

/// Gradients of a rank, divided by the ranks.
at::Tensor rank_gradients(std::int64_t rank, std::int64_t ranks, std::int64_t numel = 4096) {
  return torch::sin(torch::arange(numel) * 0.7 + static_cast<double>(rank)) / static_cast<double>(ranks);
}

}  // namespace

TEST_CASE("a half all-reduce is the sum of what each rank rounded, over 2, 3 and 4 ranks") {
  for (const auto dtype : {at::kHalf, at::kBFloat16}) {
    for (const std::int64_t ranks : {2, 3, 4}) {
      CAPTURE(ranks);
      on_ranks(ranks, [&](const World& world) {
        const auto groups = make_groups(world, {ranks, 1});
        auto buffer = rank_gradients(world.rank, ranks);
        auto transfer = HalfTransport(dtype).all_reduce(buffer, groups.replicate, "half", 0);
        transfer.advance();
        transfer.wait();
        transfer.wait();  // does nothing
        auto sum = torch::zeros({4096}, torch::kDouble);
        for (std::int64_t rank = 0; rank < ranks; ++rank)
          sum += rank_gradients(rank, ranks).to(dtype).to(torch::kDouble);
        if (ranks == 2) {
          CHECK(buffer.equal(sum.to(dtype).to(torch::kFloat)));
        } else {  // Gloo rounds each partial sum, of size up to 1
          CHECK((buffer - sum).abs().max().item<double>() <=
                static_cast<double>(ranks) * (dtype == at::kHalf ? 1.0 / 2048 : 1.0 / 256));
        }
        CHECK(buffer.equal(buffer.to(dtype).to(torch::kFloat)));
      });
    }
  }
}

TEST_CASE("a half reduce-scatter is the sum of what each rank rounded, rounded once, over 3 ranks") {
  for (const auto dtype : {at::kHalf, at::kBFloat16}) {
    on_ranks(3, [&](const World& world) {
      const auto groups = make_groups(world, {1, 3});
      auto shard = torch::full({1024}, 99.0);
      HalfTransport(dtype).reduce_scatter(shard, rank_gradients(world.rank, 3, 3072), groups.shard, "half", 0).wait();
      auto sum = torch::zeros({3072}, torch::kFloat);
      for (std::int64_t rank = 0; rank < 3; ++rank) sum += rank_gradients(rank, 3, 3072).to(dtype).to(torch::kFloat);
      CHECK(shard.equal(sum.narrow(0, world.rank * 1024, 1024).to(dtype).to(torch::kFloat)));
    });
  }
}

TEST_CASE(
    "half gradients send half the bytes in as many collectives: ddp, fsdp, and both stages of hsdp, over 4 ranks") {
  for (const auto& policy : {ddp(), fsdp(), hsdp(2)}) {
    CAPTURE(to_string(policy.method));
    const Loop loop{.steps = 2, .micro_batches = 3, .set_micro_batch = true};
    const auto plain = train_on_ranks(4, policy, loop).traffic;
    for (const auto gradients : {GradientCompression::Fp16, GradientCompression::Bf16}) {
      const auto half = train_on_ranks(4, compressed(policy, gradients), loop).traffic;
      CHECK(half.all_gather == plain.all_gather);
      CHECK(half.reduce_scatter == Traffic{plain.reduce_scatter.calls, plain.reduce_scatter.bytes / 2});
      CHECK(half.all_reduce == Traffic{plain.all_reduce.calls, plain.all_reduce.bytes / 2});
      CHECK(plain.reduce_scatter.bytes + plain.all_reduce.bytes > 0);
    }
  }
}

TEST_CASE("training with half gradients follows the exact one in every mesh, with micro-batches, over 2 and 4 ranks") {
  for (const std::int64_t ranks : {2, 4}) {
    for (const auto& policy : {ddp(), fsdp(), hsdp(2)}) {
      for (const auto gradients : {GradientCompression::Fp16, GradientCompression::Bf16}) {
        CAPTURE(ranks);
        CAPTURE(to_string(policy.method));
        const auto got = train_on_ranks(ranks, compressed(policy, gradients),
                                        {.micro_batches = 3, .sync_every_micro_batch = ranks == 4});
        const auto& exact = one_process();
        for (std::size_t i = 0; i < got.losses.size(); ++i) {
          CHECK(got.losses[i] == doctest::Approx(exact.losses[i]).epsilon(0.02));
        }
        CHECK(got.losses != exact.losses);
      }
    }
  }
}

TEST_CASE("a value beyond fp16's range arrives as an infinity, and as itself in bf16, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    const auto groups = make_groups(world, {2, 1});
    for (const auto dtype : {at::kHalf, at::kBFloat16}) {
      auto buffer = torch::full({1024}, 65536.0);
      HalfTransport(dtype).all_reduce(buffer, groups.replicate, "large", 0).wait();
      CHECK(buffer.equal(torch::full({1024}, dtype == at::kHalf ? kInfinity : 131072.0)));
    }
  });
}

TEST_CASE("no transport waits for other ranks when it starts, over 2 ranks") {
  std::atomic<int> started = 0;
  on_ranks(2, [&](const World& world) {
    auto groups = make_groups(world, {1, 2}, {.order_check = OrderCheck::Off});
    PlainTransport plain;
    HalfTransport half(at::kBFloat16);
    PowerSgdTransport power_sgd(std::make_shared<PowerSgd>(PowerSgdOptions{.start_iteration = 0}),
                                {{"matrix", 0, {64, 64}}});
    int number = 0;
    for (Transport* transport : std::initializer_list<Transport*>{&plain, &half, &power_sgd}) {
      ++number;
      // Rank 1 starts only when rank 0 has: a start that waited would end in a time-out.
      while (world.rank == 1 && started < number) std::this_thread::yield();
      auto buffer = rank_gradients(world.rank, 2);
      auto sum = transport->all_reduce(buffer, groups.world, "sum", 0);
      auto whole = rank_gradients(world.rank, 2), shard = torch::empty({2048});
      Transfer scatter;
      if (transport != &power_sgd) scatter = transport->reduce_scatter(shard, whole, groups.world, "scatter", 0);
      if (world.rank == 0) ++started;
      sum.wait();
      scatter.wait();
    }
  });
}

TEST_CASE("compression that would send no less, or cannot be done, is refused with the remedy, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    const auto refuses = [&](const Policy& policy, const char* why) {
      Shardable<Net> net;
      auto groups = groups_of(world, policy);
      groups.world.barrier();  // a rank that was refused would close what the other is still connecting
      CHECK_THROWS_WITH_AS(parallelize(*net, groups, policy), doctest::Contains(why), c10::Error);
      groups.world.barrier();
    };
    refuses(compressed(fsdp(), GradientCompression::PowerSgd), "use ddp, or Fp16 or Bf16");
    auto pure = compressed(fsdp(), GradientCompression::Fp16);
    pure.precision = parse_precision("pure");
    refuses(pure, "leave out reduce_dtype or the compression");
    auto none = compressed(ddp(), GradientCompression::PowerSgd);
    none.compression.power_sgd.matrix_approximation_rank = 0;
    refuses(none, "matrix_approximation_rank is 0");
  });
}
