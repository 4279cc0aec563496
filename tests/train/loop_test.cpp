// SPDX-License-Identifier: Apache-2.0
// What a usual LibTorch loop does with a model beside forward and backward: it zeroes, clips, saves, evaluates,
// freezes, and ends in the middle of a step. Each gives what one process gives, or an error that names the remedy. Each
// case was once silently wrong.
#include "tests/train/fixture.hpp"

#include <mutex>
#include <sstream>

using namespace sealift::test;

namespace {

/// A block that may change its input in place.
class InPlaceImpl : public torch::nn::Module {
 public:
  InPlaceImpl() : linear_(register_module("linear", torch::nn::Linear(4, 4))) { fill(*this); }
  at::Tensor forward(const at::Tensor& x) {
    if (in_place) x.mul_(2);
    return linear_(x);
  }
  bool in_place = false;

 private:
  torch::nn::Linear linear_;
};
TORCH_MODULE(InPlace);

class OuterImpl : public torch::nn::Module {
 public:
  OuterImpl()
      : first_(register_module("first", torch::nn::Linear(4, 4))),
        block(register_module("block", Shardable<InPlace>())) {
    fill(*this);
  }
  at::Tensor forward(const at::Tensor& x) {
    const auto y = first_(x);
    return block(y) + y;  // sees what the block made of y
  }
  /// Another way into the model.
  at::Tensor features(const at::Tensor& x) { return first_(x) * 3; }

 private:
  torch::nn::Linear first_;

 public:
  Shardable<InPlace> block;
};
TORCH_MODULE(Outer);

std::vector<Policy> all_methods() {
  return {ddp(), fsdp(), hsdp(2)};
}

Parallel parallelized(Shardable<Net>& net, const World& world, const Policy& policy) {
  return parallelize(*net, groups_of(world, policy), policy);
}

/// Whole values of all parameters.
std::vector<at::Tensor> values(Shardable<Net>& net, Parallel& parallel) {
  const auto whole = parallel.gather_parameters();
  std::vector<at::Tensor> copies;
  for (const auto& parameter : net->parameters()) copies.push_back(parameter.detach().clone());
  return copies;
}

void check_equal(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i].allclose(expected[i], 1e-4, 1e-6));
}

}  // namespace

TEST_CASE("micro-batch 0 of the first step counts for replicated parameters that are reduced with every micro-batch") {
  for (auto policy : all_methods()) {
    for (const bool defer : {true, false}) {
      policy.reduce_every_micro_batch = true;
      policy.defer_all_reduce = defer;
      if (policy.method != ParallelMethod::Ddp)
        policy.wrap = either(by_path("layer1", {.replicate = true}), by_block());
      CAPTURE(std::string(to_string(policy.method)));
      CAPTURE(defer);
      check_same(train_on_ranks(4, policy, {.steps = 2, .micro_batches = 3, .set_micro_batch = true}),
                 train({}, {.method = ParallelMethod::None}, {.steps = 2}));
    }
  }
}

TEST_CASE("whole gradients whose sum over copies is deferred are sent once a step, over 2 ranks") {
  const auto calls = [](bool every, bool defer) {
    auto policy = ddp();
    policy.reduce_every_micro_batch = every;
    policy.defer_all_reduce = defer;
    // The first step's buckets and their order are besides.
    const auto two = train_on_ranks(2, policy, {.steps = 2, .micro_batches = 3, .set_micro_batch = true});
    const auto three = train_on_ranks(2, policy, {.steps = 3, .micro_batches = 3, .set_micro_batch = true});
    return three.traffic.all_reduce.calls - two.traffic.all_reduce.calls;
  };
  CHECK(calls(false, true) == 1);
  CHECK(calls(true, true) == 1);
  CHECK(calls(true, false) == 3);
}

TEST_CASE("a step that is cut short leaves nothing for the next, over 4 ranks") {
  enum class Schedule { MicroBatches, Setters };
  const auto run = [](const World& world, const Policy& policy, Schedule schedule, bool through_model, bool cut) {
    Shardable<Net> net;
    auto parallel = parallelized(net, world, policy);
    torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(kLearningRate));
    const auto micro_batch = [&](std::int64_t step, std::int64_t micro) {
      if (schedule == Schedule::MicroBatches) {
        parallel.set_micro_batch(micro, 2);
      } else {
        parallel.set_requires_gradient_sync(micro == 1);
      }
      (loss_of(net, 10 * step + micro) / 2).backward();
    };
    for (int step = 0; step < 3; ++step) {
      through_model ? net->zero_grad() : optimizer.zero_grad();
      micro_batch(step, 0);
      if (cut && step == 1) {  // the data ended; the next epoch begins
        through_model ? net->zero_grad() : optimizer.zero_grad();
        micro_batch(step, 0);
      }
      micro_batch(step, 1);
      optimizer.step();
    }
    return values(net, parallel);
  };
  const auto expected = run({}, {.method = ParallelMethod::None}, Schedule::Setters, false, false);
  auto every = hsdp(2);
  every.reduce_every_micro_batch = true;
  auto offloaded = fsdp();
  offloaded.offload.gradients = offloaded.reduce_every_micro_batch = true;
  auto methods = all_methods();
  methods.insert(methods.end(), {every, offloaded});
  for (const auto& policy : methods) {
    for (const auto schedule : {Schedule::MicroBatches, Schedule::Setters}) {
      for (const bool through_model : {true, false}) {
        CAPTURE(std::string(to_string(policy.method)));
        CAPTURE(static_cast<int>(schedule));
        CAPTURE(through_model);
        on_ranks(4,
                 [&](const World& world) { check_equal(run(world, policy, schedule, through_model, true), expected); });
      }
    }
  }
}

TEST_CASE("an optimizer that steps in the middle of an accumulation is told so, over 2 ranks") {
  for (const auto& policy : {ddp(), fsdp()}) {
    on_ranks(2, [&](const World& world) {
      Shardable<Net> net;
      auto parallel = parallelized(net, world, policy);
      torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(kLearningRate));
      parallel.set_micro_batch(0, 2);
      loss_of(net).backward();
      CHECK_THROWS_WITH(optimizer.step(), doctest::Contains("collected but not reduced"));
    });
  }
}

TEST_CASE("whatever was gathered before a step, values read after it are new: by a scope, a unit, a saved model") {
  const auto without_reshard = [] {
    auto policy = fsdp();
    policy.reshard_after_forward = false;
    return policy;
  };
  // Archives name their types in tables of the process; ThreadSanitizer does not see LibTorch's own lock.
  std::mutex archives;
  for (const auto& policy : {fsdp(), without_reshard()}) {
    for (const bool sgd : {false, true}) {  // LibTorch's SGD writes through .data(), which no version counts
      on_ranks(2, [&](const World& world) {
        Shardable<Net> net;
        auto parallel = parallelized(net, world, policy);
        std::unique_ptr<torch::optim::Optimizer> optimizer;
        if (sgd) {
          optimizer = std::make_unique<torch::optim::SGD>(parallel.shards(), torch::optim::SGDOptions(0.5));
        } else {
          optimizer = std::make_unique<torch::optim::AdamW>(parallel.shards(), torch::optim::AdamWOptions(0.5));
        }
        loss_of(net).backward();
        const auto recorded = loss_of(net, 1);  // without a backward: the root, or everything, stays gathered
        const auto x = torch::ones({2, 12});
        const auto before = net->layers[0](x).detach();
        optimizer->step();
        const auto after = net->layers[0](x).detach();
        CHECK_FALSE(after.allclose(before));

        std::stringstream saved;
        Shardable<Net> loaded(5);
        {
          const auto whole = parallel.gather_parameters();
          const std::lock_guard lock(archives);
          torch::save(net, saved);
          torch::load(loaded, saved);
        }
        CHECK(loaded->layers[0](x).detach().allclose(after, 1e-5, 1e-6));
        CHECK(loaded(batch_of(0).first).allclose(net(batch_of(0).first), 1e-5, 1e-6));
      });
    }
  }
}

TEST_CASE("a block that changes its input in place is told that its caller would not see the gradient, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    Shardable<Outer> model;
    const auto parallel = parallelize(*model, groups_of(world, fsdp()), fsdp());
    CHECK_NOTHROW(model(torch::ones({2, 4})).sum().backward());
    model->block->in_place = true;
    CHECK_THROWS_WITH(model(torch::ones({2, 4})), doctest::Contains("modified inplace"));
    const at::NoGradGuard no_grad;  // nothing to protect
    CHECK_NOTHROW(model(torch::ones({2, 4})));
  });
}

TEST_CASE("model->zero_grad() drops gradients under every method as on one process") {
  const auto run = [](const World& world, const Policy& policy) {
    Shardable<Net> net;
    auto parallel = parallelized(net, world, policy);
    torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(kLearningRate));
    for (int step = 0; step < 4; ++step) {
      net->zero_grad();
      loss_of(net, step).backward();
      optimizer.step();
    }
    return values(net, parallel);
  };
  const auto expected = run({}, {.method = ParallelMethod::None});
  for (const auto& policy : all_methods()) {
    on_ranks(4, [&](const World& world) { check_equal(run(world, policy), expected); });
  }
}

TEST_CASE("reading sharded gradients or values through the model throws with the remedy, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    Shardable<Net> net;
    auto parallel = parallelized(net, world, fsdp());
    torch::optim::AdamW mistaken(net->parameters(), torch::optim::AdamWOptions(kLearningRate));
    CHECK_THROWS_WITH(torch::linear(torch::ones({1, 12}), net->tokens->weight), doctest::Contains("gather_parameters"));
    CHECK_THROWS_WITH((net->layers[0]->parameters()[0] + 1).sum(), doctest::Contains("unit 'layer0'"));
    std::stringstream stream;
    CHECK_THROWS_WITH(torch::save(net, stream), doctest::Contains("gather_parameters"));

    loss_of(net).backward();
    CHECK_THROWS_WITH(torch::nn::utils::clip_grad_norm_(net->parameters(), 1.0),
                      doctest::Contains("sealift::train::clip_grad_norm_(parallel"));
    CHECK_THROWS_WITH(mistaken.step(), doctest::Contains("Parallel::shards()"));
    CHECK_NOTHROW(loss_of(net).backward());
  });
}

TEST_CASE("what is gathered for a scope stays gathered through forwards and backwards in it, over 2 ranks") {
  const auto expected = [] {
    Shardable<Net> net;
    return net(batch_of(0).first).detach();
  }();
  for (const auto& policy : all_methods()) {
    on_ranks(4, [&](const World& world) {
      Shardable<Net> net;
      auto groups = groups_of(world, policy);
      auto parallel = parallelize(*net, groups, policy);
      {
        const auto whole = parallel.gather_parameters();
        *groups.traffic = {};
        { const auto inner = parallel.gather_parameters(); }  // its end is not the outer one's
        {
          const at::NoGradGuard no_grad;
          CHECK(net(batch_of(0).first).allclose(expected, 1e-5, 1e-6));
        }
        loss_of(net).backward();
        CHECK(groups.traffic->all_gather.calls == 0);
        for (const auto& parameter : net->parameters()) CHECK(bytes_of(parameter) > 0);
      }
      CHECK_NOTHROW(loss_of(net).backward());
    });
  }
  on_ranks(2, [](const World& world) {
    Shardable<Net> net;
    auto parallel = parallelized(net, world, fsdp());
    torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(0.5));
    loss_of(net).backward();
    const auto whole = parallel.gather_parameters();
    optimizer.step();
    CHECK_THROWS_WITH(loss_of(net), doctest::Contains("were stepped while its parameters stayed gathered"));
  });
}

TEST_CASE("a parameter that is unfrozen after parallelize is refused by name, and one frozen after it may be again") {
  for (const auto& policy : {ddp(), fsdp()}) {
    on_ranks(2, [&](const World& world) {
      Shardable<Net> net;
      auto parallel = parallelized(net, world, policy);
      const auto named = net->named_parameters();
      auto frozen = named["layer1.frozen"];
      frozen.set_requires_grad(true);
      CHECK_THROWS_WITH(loss_of(net), doctest::Contains("'layer1.frozen' was unfrozen after parallelize()"));
      frozen.set_requires_grad(false);

      auto weight = named["layer1.up.weight"];
      weight.set_requires_grad(false);
      loss_of(net).backward();
      const auto gradient = [&] {
        for (const auto& shard : parallel.named_shards()) {
          if (shard.name == "layer1.up.weight") return shard.tensor.grad();
        }
        return at::Tensor();
      };
      CHECK_FALSE(gradient().defined());
      weight.set_requires_grad(true);
      loss_of(net).backward();
      CHECK(gradient().defined());
    });
  }
}

TEST_CASE("a method other than forward gathers what it needs, over 2 ranks") {
  Shardable<Outer> alone;
  const auto expected = alone->features(torch::ones({2, 4})).detach();
  on_ranks(2, [&](const World& world) {
    Shardable<Outer> model;
    const auto parallel = parallelize(*model, groups_of(world, fsdp()), fsdp());
    CHECK_THROWS_WITH(model->features(torch::ones({2, 4})), doctest::Contains("are sharded"));
    const auto features = model->call_gathered(&OuterImpl::features, torch::ones({2, 4}));
    CHECK(features.detach().allclose(expected));
    features.sum().backward();
    CHECK(parallel.named_shards().front().tensor.grad().defined());
  });
}

TEST_CASE("a factor divides gradients in place of the world size, also when it is known last, over 4 ranks") {
  for (auto policy : all_methods()) {
    for (const auto dtype : {at::kFloat, at::kHalf}) {
      policy.precision.reduce_dtype = dtype;
      on_ranks(4, [&](const World& world) {
        const auto gradients = [&](double factor) {
          Shardable<Net> net;
          auto parallel = parallelized(net, world, policy);
          parallel.set_micro_batch(0, 2);
          loss_of(net, 0).backward();
          parallel.set_micro_batch(1, 2);
          parallel.set_gradient_divide_factor(factor);
          loss_of(net, 1).backward();
          std::vector<at::Tensor> found;
          for (const auto& shard : parallel.shards()) {
            if (shard.grad().defined()) found.push_back(shard.grad().clone());
          }
          return found;
        };
        const auto usual = gradients(0), half = gradients(8);
        for (std::size_t i = 0; i < usual.size(); ++i) CHECK(half[i].allclose(usual[i] / 2, 1e-3, 1e-6));
      });
    }
  }
}

TEST_CASE("a parameter of the root that the loss itself uses gets that gradient too, over 2 ranks") {
  const auto run = [](const World& world, const Policy& policy) {
    Shardable<Net> net;
    auto parallel = parallelized(net, world, policy);
    for (int micro = 0; micro < 3; ++micro) {
      parallel.set_requires_gradient_sync(micro == 2);
      const auto loss = loss_of(net, micro);
      (loss + net->gain.pow(2)).backward();
    }
    for (const auto& shard : parallel.named_shards()) {
      if (shard.name == "gain" && shard.tensor.numel() > 0) return shard.tensor.grad().clone();
    }
    return at::Tensor();
  };
  const auto expected = run({}, {.method = ParallelMethod::None});
  for (const auto& policy : {ddp(), fsdp()}) {
    on_ranks(2, [&](const World& world) {
      const auto got = run(world, policy);
      if (got.defined()) CHECK(got.reshape({}).allclose(expected, 1e-4, 1e-6));
    });
  }
}
