// SPDX-License-Identifier: Apache-2.0
// reducer.hpp: the order in which buckets are reduced, and what happens to gradients that come late or never.
// Numbers against one process are in parity_test.cpp; here is how they come about.
// Each case says over how many ranks it runs.
#include "tests/train/fixture.hpp"

using namespace sealift::test;

namespace {

/// Four matrices of 4 KiB, used in another order than they were registered.
class LadderImpl : public torch::nn::Module {
 public:
  explicit LadderImpl(std::vector<int> order = {2, 0, 3, 1}) : order_(std::move(order)) {
    for (int i = 0; i < 4; ++i) {
      rungs_.push_back(register_parameter("rung" + std::to_string(i), torch::eye(32) * (1 + 0.1 * i)));
    }
    register_buffer("calls", torch::zeros({1}));
  }
  at::Tensor forward(at::Tensor x) {
    for (const int i : order_) x = torch::tanh(torch::matmul(x, rungs_[static_cast<std::size_t>(i)]));
    return x;
  }
  std::vector<int> order_;

 private:
  std::vector<at::Tensor> rungs_;
};
TORCH_MODULE(Ladder);

std::vector<std::vector<std::string>> bucket_names(const Parallel& parallel) {
  std::vector<std::vector<std::string>> names;
  for (const auto* bucket : parallel.reducer().buckets()) {
    names.emplace_back();
    for (const auto& slot : bucket->slots()) names.back().push_back(slot.name);
  }
  return names;
}

const Policy kSmallBuckets{.method = ParallelMethod::Ddp, .first_bucket_bytes = 1, .bucket_bytes = 8192};

}  // namespace

TEST_CASE("buckets follow the model in reverse first, then the order in which gradients came, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    Shardable<Ladder> model;
    auto groups = groups_of(world, kSmallBuckets);
    auto parallel = parallelize(*model, groups, kSmallBuckets);
    using Names = std::vector<std::vector<std::string>>;
    CHECK(bucket_names(parallel) == Names{{"rung3"}, {"rung2", "rung1"}, {"rung0"}});
    *groups.traffic = {};
    model(torch::ones({2, 32})).sum().backward();
    CHECK(groups.traffic->all_reduce.calls == 3);
    model(torch::ones({2, 32})).sum().backward();
    CHECK(groups.traffic->all_reduce.calls == 6);
    CHECK(bucket_names(parallel) == Names{{"rung1"}, {"rung3", "rung0"}, {"rung2"}});
  });
}

TEST_CASE("ranks whose gradients come in different orders reduce the same buckets, those of rank 0, over 2 ranks") {
  const auto gradient_of = [](const World& world, const Policy& policy, bool differ) {
    Shardable<Ladder> model;
    if (differ && world.rank == 1) model->order_ = {3, 2, 1, 0};
    auto parallel = parallelize(*model, groups_of(world, policy), policy);
    std::vector<at::Tensor> sums;
    for (int step = 0; step < 3; ++step) {
      model(torch::ones({2, 32}) * (step + 1)).sum().backward();
      if (step == 1 && world.size > 1) CHECK(bucket_names(parallel).front() == std::vector<std::string>{"rung1"});
    }
    for (const auto& parameter : model->parameters()) sums.push_back(parameter.grad().clone());
    return sums;
  };
  const Policy none{.method = ParallelMethod::None};
  const auto zero = gradient_of({}, none, false);
  const auto one = gradient_of({.rank = 1}, none, true);
  on_ranks(2, [&](const World& world) {
    const auto got = gradient_of(world, kSmallBuckets, true);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i].allclose((zero[i] + one[i]) / 2, 1e-5, 1e-6));
  });
}

TEST_CASE(
    "under ddp the parameters are what the optimizer steps, and gradients of a bucket share its memory, 2 ranks") {
  on_ranks(2, [](const World& world) {
    const Policy policy{.method = ParallelMethod::Ddp};
    Shardable<Ladder> model;
    auto parallel = parallelize(*model, groups_of(world, policy), policy);
    torch::optim::SGD early(model->parameters(), torch::optim::SGDOptions(0.1));
    parallel.check_optimizer(early);
    model(torch::ones({2, 32})).sum().backward();
    const auto parameters = model->parameters();
    for (const auto& parameter : parameters) {
      CHECK(parameter.grad().storage().data_ptr() == parameters[0].grad().storage().data_ptr());
    }
  });
}

TEST_CASE("without zero_grad gradients of reduced passes add up under ddp as on one process, over 2 ranks") {
  const auto sum = [](const World& world, const Policy& policy) {
    Shardable<Ladder> model;
    auto parallel = parallelize(*model, groups_of(world, policy), policy);
    for (int step = 0; step < 3; ++step) model(torch::ones({2, 32}) * (step + 1)).sum().backward();
    return model->parameters()[1].grad().clone();
  };
  const auto expected = sum({}, {.method = ParallelMethod::None});
  on_ranks(2, [&](const World& world) { CHECK(sum(world, kSmallBuckets).allclose(expected, 1e-5, 1e-6)); });
}

TEST_CASE("a parameter whose gradient comes in several pieces of one pass gets the whole, over 2 ranks") {
  // A backward within the backward, as recomputation makes them: the bucket is reduced when the first piece is there.
  const auto sum = [](const World& world, const Policy& policy) {
    Shardable<Ladder> model;
    auto parallel = parallelize(*model, groups_of(world, policy), policy);
    const auto x = torch::ones({2, 32}, torch::requires_grad());
    const auto y = model(x);
    x.register_hook([&](const at::Tensor&) {
      at::AutoGradMode on(true);
      model(torch::ones({2, 32}) * 2).sum().backward();
    });
    y.sum().backward();
    if (policy.method == ParallelMethod::Fsdp) {
      const auto whole = parallel.named_shards()[1].tensor.grad().clone();
      return std::pair(whole, parallel.parameters()[1].offset);
    }
    return std::pair(model->parameters()[1].grad().flatten().clone(), std::int64_t{0});
  };
  const auto expected = sum({}, {.method = ParallelMethod::None}).first;
  on_ranks(2, [&](const World& world) { CHECK(sum(world, kSmallBuckets).first.allclose(expected, 1e-5, 1e-6)); });
  on_ranks(2, [&](const World& world) {
    const auto [got, offset] = sum(world, {.method = ParallelMethod::Fsdp});
    CHECK(got.flatten().allclose(expected.narrow(0, offset, got.numel()), 1e-5, 1e-6));
  });
}

TEST_CASE("ddp sends rank 0's buffers before a forward in training mode, and not in evaluation, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    for (const bool broadcast : {true, false}) {
      const Policy policy{.method = ParallelMethod::Ddp, .broadcast_buffers = broadcast};
      Shardable<Ladder> model;
      auto parallel = parallelize(*model, groups_of(world, policy), policy);
      auto calls = model->named_buffers()["calls"];
      calls.fill_(static_cast<double>(world.rank + 5));
      model->eval();
      model(torch::ones({2, 32}));
      CHECK(calls.item<double>() == world.rank + 5);
      model->train();
      model(torch::ones({2, 32}));
      CHECK(calls.item<double>() == (broadcast ? 5 : world.rank + 5));
    }
  });
}

TEST_CASE("with find_unused_parameters ranks may use different parameters of a model, over 2 ranks") {
  for (const auto& base : {Policy{.method = ParallelMethod::Ddp}, Policy{.method = ParallelMethod::Fsdp}}) {
    on_ranks(2, [&](const World& world) {
      auto policy = base;
      policy.find_unused_parameters = true;
      policy.first_bucket_bytes = policy.bucket_bytes = 1;
      Shardable<Ladder> model(world.rank == 0 ? std::vector<int>{0, 1} : std::vector<int>{0, 2});
      auto parallel = parallelize(*model, groups_of(world, policy), policy);
      for (int step = 0; step < 2; ++step) {
        for (const auto& shard : parallel.shards()) shard.mutable_grad().reset();
        model(torch::ones({2, 32})).sum().backward();
        for (const auto& [name, shard] : parallel.named_shards()) {
          if (shard.numel() > 0) CHECK(shard.grad().defined() == (name != "rung3"));
        }
      }
    });
  }
}
