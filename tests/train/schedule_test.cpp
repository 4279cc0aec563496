// SPDX-License-Identifier: Apache-2.0
// How often units are gathered and reduced, how far ahead, and when they are freed: counts, not seconds.
// With n units and the root, M micro-batches a step; formulas as in FSDP2's own tests.
// Each case says over how many ranks it runs.
#include "tests/train/fixture.hpp"

#include <ATen/autocast_mode.h>

using namespace sealift::test;

namespace {

constexpr std::int64_t kUnits = NetImpl::kLayers;  // but the root; each has a trainable and a frozen flat, the root one
constexpr std::int64_t kFlats = 2 * kUnits + 1;

/// Blocks of one matrix each, of which some may be frozen; notes which have memory whenever a block runs forward or
/// backward.
class WatchedBlockImpl : public torch::nn::Module {
 public:
  WatchedBlockImpl() : linear_(register_module("linear", torch::nn::Linear(16, 16))) {}
  at::Tensor forward(const at::Tensor& x) {
    if (probe) probe();
    auto y = linear_(x);
    if (probe && y.requires_grad()) y.register_hook([probe = probe](const at::Tensor&) { probe(); });
    return torch::tanh(y);
  }
  std::size_t bytes() { return bytes_of(linear_->weight); }
  std::function<void()> probe;

 private:
  torch::nn::Linear linear_;
};
TORCH_MODULE(WatchedBlock);

class WatchedStackImpl : public torch::nn::Module {
 public:
  explicit WatchedStackImpl(std::int64_t layers) : head(register_module("head", torch::nn::Linear(16, 4))) {
    for (std::int64_t i = 0; i < layers; ++i) {
      blocks.push_back(register_module("block" + std::to_string(i), Shardable<WatchedBlock>()));
      order.push_back(static_cast<std::size_t>(i));
    }
    fill(*this);
  }
  at::Tensor forward(at::Tensor x) {
    for (const auto i : order) x = blocks[i](x);
    return head(x);
  }
  std::vector<std::size_t> whole() {  ///< numbers of the blocks that have memory
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i]->bytes() > 0) numbers.push_back(i);
    }
    return numbers;
  }
  std::vector<Shardable<WatchedBlock>> blocks;
  torch::nn::Linear head;
  std::vector<std::size_t> order;
};
TORCH_MODULE(WatchedStack);

at::Tensor stack_input() {
  return torch::sin(torch::arange(3 * 16).view({3, 16}) * 0.37);
}

}  // namespace

TEST_CASE("a step of micro-batches gathers and reduces each unit once and moves f of b_p + b_g, over 2 and 4 ranks") {
  for (const std::int64_t ranks : {2, 4}) {
    const std::int64_t steps = 4;
    const auto outcome = train_on_ranks(ranks, fsdp(), {.steps = steps, .micro_batches = 3, .set_micro_batch = true});
    CHECK(outcome.traffic.all_gather.calls == kFlats * steps);
    CHECK(outcome.traffic.reduce_scatter.calls == (kUnits + 1) * steps);
    CHECK(outcome.traffic.all_reduce.calls == 0);
  }
  check_same(train_on_ranks(2, fsdp(), {.micro_batches = 6, .set_micro_batch = true}), one_process());
  check_same(train_on_ranks(4, hsdp(2), {.micro_batches = 3, .set_micro_batch = true}), one_process());
  check_same(train_on_ranks(2, {.method = ParallelMethod::Ddp}, {.micro_batches = 3, .set_micro_batch = true}),
             one_process());
}

TEST_CASE("of 32 micro-batches as in OLMo's case fsdp sends no more than ddp does, over 4 ranks") {
  // One row each; the loss is not compared, only what travels per step.
  const auto bytes = [](const Policy& policy) {
    std::int64_t sent = 0;
    on_ranks(4, [&](const World& world) {
      auto groups = groups_of(world, policy);
      Shardable<Net> net;
      auto parallel = parallelize(*net, groups, policy);
      const auto step = [&] {
        for (std::int64_t micro = 0; micro < 32; ++micro) {
          parallel.set_micro_batch(micro, 32);
          loss_of(net, micro).backward();
        }
      };
      step();
      *groups.traffic = {};
      step();
      const auto& traffic = *groups.traffic;
      if (world.rank == 0) {
        sent = traffic.all_gather.bytes + traffic.reduce_scatter.bytes + traffic.all_reduce.bytes +
               traffic.broadcast.bytes;
      }
    });
    return sent;
  };
  // Frozen parameters are gathered too, and flats of tiny layers are padded: within a tenth.
  CHECK(bytes(fsdp()) <= bytes({.method = ParallelMethod::Ddp}) * 1.1);
}

TEST_CASE("without keeping units gathered a step of M micro-batches gathers (2n + root) M times and reduces once") {
  auto policy = fsdp();
  policy.keep_gathered = KeepGathered::Never;
  const std::int64_t M = 3, steps = 3;
  const auto outcome = train_on_ranks(2, policy, {.steps = steps, .micro_batches = M, .set_micro_batch = true});
  CHECK(outcome.traffic.all_gather.calls == (2 * 2 * kUnits + 1) * M * steps);
  CHECK(outcome.traffic.reduce_scatter.calls == (kUnits + 1) * steps);
}

TEST_CASE("reducing every micro-batch keeps units gathered all the same, over 2 ranks") {
  auto policy = fsdp();
  policy.reduce_every_micro_batch = true;
  const std::int64_t M = 3;
  const auto outcome = train_on_ranks(2, policy, {.micro_batches = M, .set_micro_batch = true});
  check_same(outcome, one_process());
  CHECK(outcome.traffic.all_gather.calls == kFlats * 10);
  CHECK(outcome.traffic.reduce_scatter.calls == (kUnits + 1) * M * 10);
}

TEST_CASE("hsdp may defer only the sum over copies, over 2x2 ranks") {
  auto policy = hsdp(2);
  policy.reduce_every_micro_batch = true;
  const std::int64_t M = 3;
  for (const bool defer : {true, false}) {
    policy.defer_all_reduce = defer;
    const auto outcome = train_on_ranks(4, policy, {.micro_batches = M, .set_micro_batch = true});
    check_same(outcome, one_process());
    CHECK(outcome.traffic.reduce_scatter.calls == (kUnits + 1) * M * 10);
    CHECK(outcome.traffic.all_reduce.calls == (kUnits + 1) * (defer ? 1 : M) * 10);
  }
}

TEST_CASE("after forward a unit may keep the part of a smaller group, from which backward gathers it, over 4 ranks") {
  auto policy = fsdp();
  policy.reshard_group = 2;
  const auto outcome = train_on_ranks(4, policy, {.steps = 10});
  check_same(outcome, one_process());
  const auto full = train_on_ranks(4, fsdp(), {.steps = 10}).traffic;
  CHECK(outcome.traffic.all_gather.calls == full.all_gather.calls);
  // Forward sends 3/4, backward 1/2 instead of 3/4; the root is gathered once either way.
  CHECK(outcome.traffic.all_gather.bytes < full.all_gather.bytes);
  CHECK_THROWS_WITH(train_on_ranks(4, {.method = ParallelMethod::Fsdp, .reshard_group = 3}),
                    doctest::Contains("reshard_group is 3"));
}

TEST_CASE("8 ranks, more than some parameters have rows, train as one process does") {
  const Loop few{.steps = 10};
  const auto plain = [] {
    // 12 rows do not divide by 8; compare with 4 ranks of which each rank's part is the same.
    return train_on_ranks(4, fsdp());
  }();
  on_ranks(8, [&](const World& world) {
    Shardable<Net> net;
    auto parallel = parallelize(*net, groups_of(world, fsdp()), fsdp());
    torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(kLearningRate));
    for (std::int64_t step = 0; step < few.steps; ++step) {
      optimizer.zero_grad();
      const auto loss = loss_of(net, step);  // every rank the whole batch: the mean of equals
      CHECK(loss.item<double>() == doctest::Approx(plain.losses[static_cast<std::size_t>(step)]).epsilon(1e-5));
      loss.backward();
      optimizer.step();
    }
  });
}

TEST_CASE("from the second step on the next unit is gathered while one runs, and never more than the depth, 2 ranks") {
  for (const std::int64_t depth : {0, 1, 2}) {
    CAPTURE(depth);
    on_ranks(2, [&](const World& world) {
      auto policy = fsdp();
      policy.forward_prefetch = policy.backward_prefetch = depth;
      Shardable<WatchedStack> model(5);
      auto parallel = parallelize(*model, groups_of(world, policy), policy);
      std::size_t most = 0, ahead = 0;
      bool backward = false;
      for (std::size_t i = 0; i < 5; ++i) {
        model->blocks[i]->probe = [&, i] {
          const auto whole = model->whole();
          most = std::max(most, whole.size());
          const auto next = backward ? i - 1 : i + 1;
          if (next < 5 && std::find(whole.begin(), whole.end(), next) != whole.end()) ++ahead;
        };
      }
      for (int step = 0; step < 3; ++step) {
        ahead = 0;
        backward = false;
        const auto loss = model(stack_input()).sum();
        backward = true;
        loss.backward();
        // The first forward knows no order; backward always does.
        CHECK(ahead == (depth == 0 ? 0 : step == 0 ? 4 : 8));
      }
      CHECK(most <= static_cast<std::size_t>(depth) + 1);
      CHECK(model->whole().empty());
    });
  }
}

TEST_CASE("an order that changes costs no correctness, no more memory, and leaves nothing gathered, over 2 ranks") {
  const auto run = [](const World& world, const Policy& policy) {
    Shardable<WatchedStack> model(5);
    auto parallel = parallelize(*model, groups_of(world, policy), policy);
    std::size_t most = 0;
    for (auto& block : model->blocks) block->probe = [&] { most = std::max(most, model->whole().size()); };
    for (const auto& order : std::vector<std::vector<std::size_t>>{
             {0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {0, 2, 4}, {1, 1, 3, 0}, {0, 1, 2, 3, 4}}) {
      model->order = order;
      model(stack_input()).sum().backward();
      if (policy.method == ParallelMethod::Fsdp) CHECK(model->whole().empty());
    }
    if (policy.method == ParallelMethod::Fsdp) CHECK(most <= 2);
    return gradient_norm(parallel);
  };
  const double expected = run({}, {.method = ParallelMethod::None});
  on_ranks(2, [&](const World& world) { CHECK(run(world, fsdp()) == doctest::Approx(expected).epsilon(1e-5)); });
}

TEST_CASE("a prefetch list of the user's holds instead of the order of calls, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    Shardable<WatchedStack> model(4);
    auto parallel = parallelize(*model, groups_of(world, fsdp()), fsdp());
    parallel.set_forward_prefetch("block0", {"block1", "block2", "block3"});
    parallel.set_backward_prefetch("block3", {"block2", "block1"});
    CHECK_THROWS_WITH(parallel.set_forward_prefetch("block9", {}), doctest::Contains("there is no unit 'block9'"));
    std::vector<std::size_t> in_forward, in_backward;
    bool backward = false;
    model->blocks[0]->probe = [&] {
      if (!backward) in_forward = model->whole();
    };
    model->blocks[3]->probe = [&] {
      if (backward) in_backward = model->whole();
    };
    const auto loss = model(stack_input()).sum();
    backward = true;
    loss.backward();
    CHECK(in_forward == std::vector<std::size_t>{0, 1, 2, 3});
    CHECK(in_backward == std::vector<std::size_t>{1, 2, 3});
  });
}

TEST_CASE("a model whose root holds nothing itself gathers each block twice a step and nothing else, over 2 ranks") {
  class ChainImpl : public torch::nn::Module {
   public:
    ChainImpl() {
      for (int i = 0; i < 3; ++i)
        blocks_.push_back(register_module("block" + std::to_string(i), Shardable<WatchedBlock>()));
    }
    at::Tensor forward(at::Tensor x) {
      for (auto& block : blocks_) x = block(x);
      return x;
    }

   private:
    std::vector<Shardable<WatchedBlock>> blocks_;
  };
  on_ranks(2, [](const World& world) {
    auto groups = groups_of(world, fsdp());
    ShardableImpl<ChainImpl> model;
    auto parallel = parallelize(model, groups, fsdp());
    at::Tensor loss;  // the last step's graph stays alive into the next
    for (int step = 0; step < 3; ++step) {
      const auto before = groups.traffic->all_gather.calls;
      loss = model.forward(stack_input()).sum();
      loss.backward();
      CHECK(groups.traffic->all_gather.calls - before == 6);
    }
  });
}

TEST_CASE("frozen units are freed in backward as they are passed, and get no gradient memory, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    Shardable<WatchedStack> model(5);
    for (const std::size_t i : {1, 2, 3}) {
      for (auto& parameter : model->blocks[i]->parameters()) parameter.set_requires_grad(false);
    }
    auto groups = groups_of(world, fsdp());
    auto parallel = parallelize(*model, groups, fsdp());
    CHECK(parallel.shards().size() == 2 + 2 * 2);
    std::size_t most = 0;
    for (auto& block : model->blocks) block->probe = [&] { most = std::max(most, model->whole().size()); };
    *groups.traffic = {};
    model(stack_input()).sum().backward();
    CHECK(most <= 2);
    CHECK(groups.traffic->reduce_scatter.calls == 3);
    CHECK(groups.traffic->all_gather.calls == 2 * 5 + 1);
  });
}

TEST_CASE("a unit whose trainable part comes before its frozen part in backward stays whole for both, over 2 ranks") {
  // As with adapters: the last gradient of the unit is there long before the frozen matrix was used for the last time.
  class AdaptedImpl : public torch::nn::Module {
   public:
    AdaptedImpl() : base_(register_module("base", torch::nn::Linear(16, 16))) {
      adapter_ = register_parameter("adapter", torch::ones({16}));
      for (auto& parameter : base_->parameters()) parameter.set_requires_grad(false);
    }
    at::Tensor forward(const at::Tensor& x) { return base_(torch::tanh(base_(x))) * adapter_; }

   private:
    torch::nn::Linear base_;
    at::Tensor adapter_;
  };
  class RootImpl : public torch::nn::Module {
   public:
    RootImpl() : first_(register_module("first", torch::nn::Linear(16, 16))) {
      for (int i = 0; i < 2; ++i) {
        blocks_.push_back(register_module("block" + std::to_string(i), std::make_shared<ShardableImpl<AdaptedImpl>>()));
      }
      fill(*this);
    }
    at::Tensor forward(at::Tensor x) {
      x = first_(x);
      for (auto& block : blocks_) x = block->forward(x);
      return x;
    }

   private:
    torch::nn::Linear first_;
    std::vector<std::shared_ptr<ShardableImpl<AdaptedImpl>>> blocks_;
  };
  const auto norm = [](const World& world, const Policy& policy) {
    auto model = std::make_shared<ShardableImpl<RootImpl>>();
    auto parallel = parallelize(*model, groups_of(world, policy), policy);
    model->forward(stack_input()).square().sum().backward();
    return gradient_norm(parallel);
  };
  const double expected = norm({}, {.method = ParallelMethod::None});
  on_ranks(2, [&](const World& world) { CHECK(norm(world, fsdp()) == doctest::Approx(expected).epsilon(1e-5)); });
}

TEST_CASE("two forwards before one backward, as in DPO, give both gradients, over 3 ranks") {
  const auto gradients = [](const World& world, const Policy& policy) {
    Shardable<Net> net;
    auto parallel = parallelize(*net, groups_of(world, policy), policy);
    std::vector<double> norms;
    for (int step = 0; step < 3; ++step) {
      for (const auto& shard : parallel.shards()) shard.mutable_grad().reset();
      const auto chosen = loss_of(net, step), rejected = loss_of(net, step + 5);
      (chosen - 0.3 * rejected).backward();
      norms.push_back(gradient_norm(parallel));
    }
    return norms;
  };
  const auto expected = gradients({}, {.method = ParallelMethod::None});
  for (const auto& policy : {fsdp(), Policy{.method = ParallelMethod::Fsdp, .reshard_after_forward = false},
                             Policy{.method = ParallelMethod::Ddp}}) {
    on_ranks(3, [&](const World& world) {
      const auto got = gradients(world, policy);
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-5));
    });
  }
}

TEST_CASE("one forward, one backward, the next forward before the last backward: each unit gathered once, 2 ranks") {
  const auto run = [](const World& world, const Policy& policy, std::int64_t& gathers) {
    Shardable<Net> net;
    auto groups = groups_of(world, policy);
    auto parallel = parallelize(*net, groups, policy);
    *groups.traffic = {};
    parallel.set_requires_gradient_sync(false);
    parallel.set_reshard_after_backward(false);
    auto first = loss_of(net, 0);
    auto second = loss_of(net, 1);
    first.backward();
    auto third = loss_of(net, 2);
    second.backward();
    parallel.set_requires_gradient_sync(true);
    parallel.set_reshard_after_backward(true);
    third.backward();
    gathers = groups.traffic->all_gather.calls;
    return gradient_norm(parallel);
  };
  std::int64_t ignored = 0;
  const double expected = run({}, {.method = ParallelMethod::None}, ignored);
  on_ranks(2, [&](const World& world) {
    std::int64_t gathers = 0;
    auto policy = fsdp();
    policy.reshard_after_forward = false;
    CHECK(run(world, policy, gathers) == doctest::Approx(expected).epsilon(1e-5));
    CHECK(gathers == kFlats);
  });
}

TEST_CASE("blocks that share a unit are gathered once for all, and a part of them may run, over 2 ranks") {
  const auto run = [](const World& world, const Policy& policy, std::vector<std::size_t> order,
                      TrafficReport& traffic) {
    Shardable<WatchedStack> model(5);
    auto groups = groups_of(world, policy);
    auto parallel = parallelize(*model, groups, policy);
    *groups.traffic = {};
    std::vector<double> norms;
    for (int step = 0; step < 2; ++step) {
      model->order = order;
      model(stack_input()).sum().backward();
      norms.push_back(gradient_norm(parallel));
    }
    traffic = *groups.traffic;
    return norms;
  };
  auto grouped = fsdp();
  grouped.wrap = by_block_group(2);
  for (const auto& order : std::vector<std::vector<std::size_t>>{{0, 1, 2, 3, 4}, {0, 2, 3}, {1, 0, 4, 4}}) {
    TrafficReport traffic;
    const auto expected = run({}, {.method = ParallelMethod::None}, order, traffic);
    on_ranks(2, [&](const World& world) {
      TrafficReport sent;
      const auto got = run(world, grouped, order, sent);
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-5));
      CHECK(sent.reduce_scatter.calls == (order.size() == 3 ? 3 : order[0] == 1 ? 3 : 4) * 2);
      if (order.size() == 5) CHECK(sent.all_gather.calls == (2 * 3 + 1 + /*the norm's*/ 1) * 2);
    });
  }
}

TEST_CASE("an ignored parameter stays whole and out of everything, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    auto policy = fsdp();
    policy.ignored_parameters = {"layer1.up.*"};
    Shardable<Net> net;
    auto parallel = parallelize(*net, groups_of(world, policy), policy);
    const auto ignored = net->layers[1]->named_parameters()["up.weight"];
    CHECK(bytes_of(ignored) > 0);
    for (const auto& parameter : parallel.parameters()) CHECK_FALSE(parameter.name.starts_with("layer1.up"));
    const auto [ids, targets] = batch_of(0);
    const auto rows = ids.narrow(0, world.rank * 3, 3);
    torch::nn::functional::cross_entropy(net(rows), targets.narrow(0, world.rank * 3, 3)).backward();
    // Its gradient is this rank's own: ranks had different rows.
    auto all = torch::zeros({2, ignored.numel()});
    all[world.rank] = ignored.grad().flatten();
    parallel.groups().world.all_reduce(all).wait();
    CHECK_FALSE(all[0].allclose(all[1]));
  });
}

TEST_CASE("a replicated unit among sharded ones trains as one process does, its gradient all-reduced, over 4 ranks") {
  for (auto policy : {fsdp(), hsdp(2)}) {
    policy.wrap = either(by_path("layer1", {.replicate = true}), by_block());
    const auto outcome = train_on_ranks(4, policy, {.clip = 0.05});
    const auto plain = train({}, {.method = ParallelMethod::None}, {.clip = 0.05});
    check_same(outcome, plain);
    CHECK(outcome.traffic.reduce_scatter.calls == kUnits * 10);
  }
}

TEST_CASE("after an exception in forward the model may be reset and stepped, or evaluated, over 2 ranks") {
  const auto loss = [](const World& world, const Policy& policy, bool fail) {
    Shardable<Net> net;
    auto parallel = parallelize(*net, groups_of(world, policy), policy);
    torch::optim::SGD optimizer(parallel.shards(), torch::optim::SGDOptions(0.1));
    for (int step = 0; step < 3; ++step) {
      if (fail && step == 1) {
        net->layers[1]->probe = [] { throw std::runtime_error("in forward"); };
        CHECK_THROWS_WITH(loss_of(net, step), "in forward");
        net->layers[1]->probe = nullptr;
        parallel.reset();
        for (const auto& parameter : net->parameters()) CHECK(bytes_of(parameter) == 0);
      }
      optimizer.zero_grad();
      loss_of(net, step).backward();
      optimizer.step();
    }
    at::NoGradGuard no_grad;
    return loss_of(net, 3).item<double>();
  };
  const double expected = loss({}, {.method = ParallelMethod::None}, false);
  on_ranks(2, [&](const World& world) { CHECK(loss(world, fsdp(), true) == doctest::Approx(expected).epsilon(1e-5)); });
}

TEST_CASE("zero_grad() of the model or the optimizer drops what a pass that failed has left, over 2 ranks") {
  const auto failing = [](NetImpl& net, bool in_backward) {
    net.layers[0]->probe = [in_backward] {
      if (!in_backward || torch::autograd::get_current_graph_task_id() >= 0) throw std::runtime_error("on purpose");
    };
  };
  for (const bool in_backward : {false, true}) {
    for (const bool of_model : {false, true}) {
      for (const auto& policy : {fsdp(), Policy{.method = ParallelMethod::Ddp}}) {
        CAPTURE(in_backward);
        CAPTURE(of_model);
        on_ranks(2, [&](const World& world) {
          Shardable<Net> net;
          auto parallel = parallelize(*net, groups_of(world, policy), policy);
          torch::optim::SGD optimizer(parallel.shards(), torch::optim::SGDOptions(0));
          const auto zero_grad = [&] { of_model ? net->zero_grad() : optimizer.zero_grad(); };
          loss_of(net, 0).backward();
          const auto norm = gradient_norm(parallel);
          if (in_backward) zero_grad();
          failing(*net, in_backward);
          CHECK_THROWS_WITH(loss_of(net, 0).backward(), "on purpose");
          net->layers[0]->probe = nullptr;
          parallel.reset();
          zero_grad();
          loss_of(net, 0).backward();
          CHECK(gradient_norm(parallel) == doctest::Approx(norm).epsilon(1e-5));
        });
      }
    }
  }
}

TEST_CASE("no cast of a forward that failed under autocast is used after a reset, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    Shardable<Net> net;
    auto groups = groups_of(world, fsdp());
    auto parallel = parallelize(*net, groups, fsdp());
    const auto autocast = [&](const auto& body) {
      at::autocast::set_autocast_enabled(at::kCPU, true);
      body();
      at::autocast::set_autocast_enabled(at::kCPU, false);
    };
    // A gradient that comes after its unit was reduced is reduced once more.
    const auto reductions_of_step = [&] {
      const auto before = groups.traffic->reduce_scatter.calls;
      at::Tensor loss;
      autocast([&] { loss = loss_of(net, 0); });
      groups.world.barrier();  // threads share the cache, which only a rank that has left its forward may clear
      at::autocast::clear_cache();
      loss.backward();
      return groups.traffic->reduce_scatter.calls - before;
    };
    const auto reductions = reductions_of_step();
    net->layers[1]->probe = [] { throw std::runtime_error("in forward"); };
    autocast([&] { CHECK_THROWS_WITH(loss_of(net, 0), "in forward"); });
    net->layers[1]->probe = nullptr;
    parallel.reset();
    groups.world.barrier();
    CHECK(reductions_of_step() == reductions);
  });
}

TEST_CASE("evaluation in the middle of training neither changes it nor gathers more than the units, over 2 ranks") {
  const auto run = [](const World& world, const Policy& policy, bool evaluate) {
    Shardable<Net> net;
    auto groups = groups_of(world, policy);
    auto parallel = parallelize(*net, groups, policy);
    torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(1e-2));
    double last = 0;
    for (int step = 0; step < 4; ++step) {
      if (evaluate) {
        at::NoGradGuard no_grad;
        const auto before = groups.traffic->all_gather.calls;
        loss_of(net, 7);
        CHECK(groups.traffic->all_gather.calls - before == kFlats);
        for (const auto& parameter : net->parameters()) CHECK(bytes_of(parameter) == 0);
      }
      optimizer.zero_grad();
      const auto loss = loss_of(net, step);
      last = loss.item<double>();
      loss.backward();
      optimizer.step();
    }
    return last;
  };
  on_ranks(2, [&](const World& world) { CHECK(run(world, fsdp(), true) == run(world, fsdp(), false)); });
}
