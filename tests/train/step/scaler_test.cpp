// SPDX-License-Identifier: Apache-2.0
// The scaler against the rules of torch.amp.GradScaler, alone and over ranks of which one overflows.
// Overflows are put into one rank's shard by hand; one case overflows for real, in half precision.
// Every case ends with all ranks at the same scale: a rank that decides alone would diverge or hang.
#include "tests/train/fixture.hpp"

#include <limits>

using namespace sealift::test;

namespace {

/// One parameter on one process.
struct Alone {
  explicit Alone(GradScalerOptions options)
      : model(torch::nn::Linear(2, 1)),
        parallel(parallelize(*model, Groups{}, Policy{})),
        optimizer(parallel.shards(), torch::optim::SGDOptions(1)),
        scaler(parallel, options) {}

  /// A step with these gradients, as backward of a scaled loss leaves them; whether the optimizer stepped.
  bool step(double gradient) {
    for (auto& shard : parallel.shards()) shard.mutable_grad() = torch::full_like(shard, gradient * scaler.get_scale());
    const bool done = scaler.step(optimizer);
    scaler.update();
    return done;
  }

  torch::nn::Linear model;
  Parallel parallel;
  torch::optim::SGD optimizer;
  GradScaler scaler;
};

}  // namespace

TEST_CASE("the defaults are those of torch.amp.GradScaler") {
  const GradScalerOptions options;
  CHECK(options.init_scale == 65536);
  CHECK(options.growth_factor == 2);
  CHECK(options.backoff_factor == 0.5);
  CHECK(options.growth_interval == 2000);
}

TEST_CASE("the loss is scaled and a step sees gradients without the scale") {
  Alone alone({.init_scale = 8});
  CHECK(alone.scaler.scale(torch::full({}, 3.0)).item<double>() == 24);
  CHECK((alone.scaler.scale(torch::full({}, 3.0, torch::kHalf)).scalar_type() == torch::kHalf));
  const auto before = alone.model->weight.detach().clone();
  CHECK(alone.step(0.25));
  CHECK(alone.model->weight.allclose(before - 0.25));
}

TEST_CASE("the scale grows after an interval of good steps, shrinks on overflow, and overflow starts a new interval") {
  Alone alone({.init_scale = 16, .growth_interval = 3});
  std::vector<double> scales;
  for (const double gradient : {1.0, 1.0, kInfinity, 1.0, 1.0, 1.0, 1.0, std::nan(""), 1.0}) {
    CHECK(alone.step(gradient) == std::isfinite(gradient));
    scales.push_back(alone.scaler.get_scale());
  }
  CHECK(scales == std::vector<double>{16, 16, 8, 8, 8, 16, 16, 8, 8});
}

TEST_CASE("the scale does not grow beyond what a float holds") {
  Alone alone({.init_scale = 3e38, .growth_interval = 1});
  CHECK(alone.step(0));
  CHECK(alone.scaler.get_scale() == 3e38);
}

TEST_CASE("unscaling before clipping happens once, and misuse names the remedy") {
  Alone alone({.init_scale = 4});
  CHECK_THROWS_WITH_AS(alone.scaler.update(), doctest::Contains("update() without step()"), c10::Error);
  for (auto& shard : alone.parallel.shards()) shard.mutable_grad() = torch::full_like(shard, 4.0);
  alone.scaler.unscale_(alone.optimizer);
  CHECK(gradient_norm(alone.parallel) == doctest::Approx(std::sqrt(3.0)));
  CHECK_THROWS_WITH_AS(alone.scaler.unscale_(alone.optimizer), doctest::Contains("unscaled or stepped"), c10::Error);
  CHECK(alone.scaler.step(alone.optimizer));
  CHECK_THROWS_WITH_AS(alone.scaler.step(alone.optimizer), doctest::Contains("call update()"), c10::Error);
  CHECK_THROWS_WITH_AS(alone.scaler.load_state({.scale = 1}), doctest::Contains("between iterations"), c10::Error);
  alone.scaler.update();
  CHECK_THROWS_WITH_AS(alone.scaler.load_state({.scale = 0}), doctest::Contains("checkpoint's scale is 0"), c10::Error);
  CHECK_THROWS_WITH_AS(Alone({.backoff_factor = 2}), doctest::Contains("backoff_factor is 2"), c10::Error);
}

TEST_CASE("a disabled scaler steps and changes nothing") {
  Alone alone({.enabled = false});
  const auto loss = torch::full({}, 3.0);
  CHECK(alone.scaler.scale(loss).is_same(loss));
  CHECK(alone.scaler.get_scale() == 1);
  CHECK(alone.step(kInfinity));
}

TEST_CASE("a loaded state continues the interval") {
  Alone first({.init_scale = 16, .growth_interval = 2});
  first.step(1);
  Alone second({.init_scale = 4, .growth_interval = 2});
  second.scaler.load_state(first.scaler.state());
  CHECK(second.scaler.state() == first.scaler.state());
  second.step(1);
  CHECK(second.scaler.get_scale() == 32);
}

TEST_CASE("two optimizers decide apart, and either's overflow shrinks the scale") {
  Alone alone({.init_scale = 8});
  auto shards = alone.parallel.shards();
  torch::optim::SGD one({shards[0]}, torch::optim::SGDOptions(1)), two({shards[1]}, torch::optim::SGDOptions(1));
  shards[0].mutable_grad() = torch::ones_like(shards[0]);
  shards[1].mutable_grad() = torch::full_like(shards[1], kInfinity);
  CHECK(alone.scaler.step(one));
  CHECK_FALSE(alone.scaler.step(two));
  alone.scaler.update();
  CHECK(alone.scaler.get_scale() == 4);
}

TEST_CASE("infinity on one rank makes all ranks skip, the scale halves, and the next step is done") {
  for (const auto& [ranks, policy] : std::vector<std::pair<std::int64_t, Policy>>{
           {2, fsdp()}, {4, fsdp()}, {4, {.method = ParallelMethod::Hsdp, .shard_size = 2}}}) {
    CAPTURE(ranks);
    on_ranks(ranks, [&, ranks = ranks, policy = policy](const World& world) {
      Shardable<Net> net;
      auto parallel = parallelize(*net, make_groups(world, make_mesh(policy, ranks)), policy);
      torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(kLearningRate));
      GradScaler scaler(parallel);
      std::vector<bool> done;
      std::vector<at::Tensor> before;
      for (std::int64_t step = 0; step < 3; ++step) {
        optimizer.zero_grad();
        const auto [ids, targets] = batch_of(step);
        scaler.scale(torch::nn::functional::cross_entropy(net(ids), targets)).backward();
        before.clear();
        for (const auto& shard : parallel.shards()) before.push_back(shard.detach().clone());
        if (step == 1 && world.rank == ranks - 1) {
          for (const auto& shard : parallel.shards()) {
            if (shard.numel() > 0 && shard.grad().defined()) shard.grad().view({-1})[0] = kInfinity;
          }
        }
        done.push_back(scaler.step(optimizer));
        if (step == 1) {
          for (std::size_t i = 0; i < before.size(); ++i) CHECK(parallel.shards()[i].equal(before[i]));
        }
        scaler.update();
      }
      CHECK(done == std::vector<bool>{true, false, true});
      CHECK(scaler.get_scale() == 32768);
    });
  }
}

TEST_CASE("a rank whose shards are all empty agrees with the one that overflowed") {
  on_ranks(4, [](const World& world) {
    Shardable<torch::nn::Linear> model(2, 1);
    auto parallel = parallelize(*model, make_groups(world, make_mesh(fsdp(), 4)), fsdp());
    std::int64_t held = 0;
    for (const auto& shard : parallel.shards()) held += shard.numel();
    auto total = torch::tensor({std::int64_t{held == 0}});
    parallel.groups().world.all_reduce(total).wait();
    REQUIRE(total.item<std::int64_t>() > 0);

    torch::optim::AdamW optimizer(parallel.shards());
    GradScaler scaler(parallel);
    // The gradient of the weight overflows, and only where it is held.
    scaler.scale(model(torch::full({1, 2}, 1e38)).sum()).backward();
    CHECK_FALSE(scaler.step(optimizer));
    scaler.update();
    optimizer.zero_grad();
    scaler.scale(model(torch::ones({1, 2})).sum()).backward();
    CHECK(scaler.step(optimizer));
    scaler.update();
    CHECK(scaler.get_scale() == 32768);
  });
}

TEST_CASE("a half precision model finds its scale and trains, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    Shardable<Net> net;
    net->to(torch::kHalf);
    auto parallel = parallelize(*net, make_groups(world, make_mesh(fsdp(), 2)), fsdp());
    torch::optim::SGD optimizer(parallel.shards(), torch::optim::SGDOptions(0.3).momentum(0.9));
    GradScaler scaler(parallel, {.init_scale = 1 << 20});
    std::int64_t skipped = 0;
    double first = 0, last = 0;
    for (std::int64_t step = 0; step < 40; ++step) {
      optimizer.zero_grad();
      const auto [ids, targets] = batch_of(step);
      const auto loss = torch::nn::functional::cross_entropy(net(ids).to(torch::kFloat32), targets);
      scaler.scale(loss).backward();
      scaler.unscale_(optimizer);
      clip_grad_norm_(parallel, 1);
      skipped += scaler.step(optimizer) ? 0 : 1;
      scaler.update();
      last = loss.item<double>();
      if (step == 0) first = last;
    }
    CHECK(skipped > 0);
    CHECK(skipped < 10);
    CHECK(last < first);  // of the same batch, three rounds later
    auto agreed = torch::full({1}, scaler.get_scale());
    parallel.groups().world.broadcast(agreed).wait();
    CHECK(agreed.item<double>() == scaler.get_scale());
  });
}
