// SPDX-License-Identifier: Apache-2.0
// What runs beside what in a backward pass, and what is held meanwhile: seen by an observer and by the memory behind
// parameters, counted, never timed.
// Each case was once slow or large without a word.
#include "tests/train/fixture.hpp"
#include "trainer/simulate/step_time.hpp"

#include <map>

using namespace sealift::test;

namespace {

/// A rank's events in order: "+ReduceWait layer1" when one begins, "-..." when it ends.
class Events final : public Observer {
 public:
  void begin(Activity activity, const std::string& unit) override { add("+", activity, unit); }
  void end(Activity activity, const std::string& unit) override { add("-", activity, unit); }
  void step_ended(std::int64_t step) override { list.push_back("step " + std::to_string(step)); }

  std::ptrdiff_t place(const std::string& event) const {
    const auto found = std::find(list.begin(), list.end(), event);
    const bool happened = found != list.end();
    REQUIRE_MESSAGE(happened, event);
    return found - list.begin();
  }
  std::int64_t count(const std::string& event) const { return std::count(list.begin(), list.end(), event); }

  std::vector<std::string> list;

 private:
  void add(const char* sign, Activity activity, const std::string& unit) {
    static constexpr const char* kNames[] = {"Gather", "GatherWait", "Reduce", "ReduceWait", "Forward", "Backward"};
    list.push_back(sign + std::string(kNames[static_cast<int>(activity)]) + " " + unit);
  }
};

/// A matrix, its activations recomputed or not.
class PlainImpl : public torch::nn::Module {
 public:
  PlainImpl() : linear_(register_module("linear", torch::nn::Linear(16, 16))) { fill(*this); }
  at::Tensor forward(const at::Tensor& x) { return torch::tanh(linear_(x)); }

 private:
  torch::nn::Linear linear_;
};
TORCH_MODULE(Plain);

template <class Block>
class StackImpl : public torch::nn::Module {
 public:
  explicit StackImpl(bool frozen_head = false)
      : embed_(register_module("embed", torch::nn::Linear(16, 16))),
        head_(register_module("head", torch::nn::Linear(16, 4))) {
    for (int i = 0; i < 5; ++i) {
      blocks.push_back(register_module("block" + std::to_string(i), Shardable<Block>()));
    }
    fill(*this);
    if (frozen_head) {
      for (auto& parameter : head_->parameters()) parameter.set_requires_grad(false);
    }
  }
  at::Tensor forward(at::Tensor x) {
    x = embed_(x);
    for (auto& block : blocks) x = block(x);
    return head_(x);
  }
  std::vector<Shardable<Block>> blocks;

 private:
  torch::nn::Linear embed_, head_;
};
class StackOfPlainImpl : public StackImpl<Plain> {
 public:
  using StackImpl::StackImpl;
};
TORCH_MODULE(StackOfPlain);
class StackOfRecomputedImpl : public StackImpl<Recomputed<Plain>> {
 public:
  using StackImpl::StackImpl;
};
TORCH_MODULE(StackOfRecomputed);

/// What a rank issues, and what it has computed when; the root's backward is the whole pass.
std::vector<std::string> issued_and_ended(const std::vector<std::string>& events) {
  std::vector<std::string> order;
  for (const auto& event : events) {
    const bool issued = event.starts_with("+Gather ") || event.starts_with("+Reduce ");
    const bool ended = event.starts_with("-Forward ") || event.starts_with("-Backward ");
    if ((issued || ended) && event != "-Backward root") order.push_back(event);
  }
  return order;
}

/// The same of StackOfPlain on the simulator's clock.
std::vector<std::string> simulated_order(const Policy& policy, std::int64_t micro_batches) {
  using enum sealift::trainer::StepActivity;
  sealift::trainer::StepShape shape;
  for (const auto* name : {"root", "block0", "block1", "block2", "block3", "block4"}) {
    auto& unit = shape.units.emplace_back();
    unit.name = name;
    unit.forward_flops = unit.backward_flops = 1;
    unit.gather_bytes = unit.reduce_bytes = 3;
    unit.copies_bytes = policy.method == ParallelMethod::Hsdp ? 1 : 0;
  }
  shape.micro_batches = micro_batches;
  shape.gather_again_in_backward = policy.reshard_after_forward;
  shape.reduce_every_micro_batch = policy.reduce_every_micro_batch;
  shape.keep_gathered = policy.keep_gathered == KeepGathered::Always;
  shape.forward_prefetch = policy.forward_prefetch;
  shape.backward_prefetch = policy.backward_prefetch;
  sealift::trainer::Rates rates;
  rates.flops = rates.link_bytes_per_second = 1;
  std::vector<std::string> order;
  for (const auto& event : sealift::trainer::simulate_events(shape, rates)) {
    const auto name = sealift::trainer::name_of(shape, event);
    if (event.what == Gather) order.push_back("+Gather " + name);
    if (event.what == Reduce) order.push_back("+Reduce " + name);
    if (event.what == Forward) order.push_back("-Forward " + name);
    if (event.what == Backward && event.unit > 0) order.push_back("-Backward " + name);
  }
  return order;
}

at::Tensor input() {
  return torch::sin(torch::arange(3 * 16).view({3, 16}) * 0.37);
}

}  // namespace

TEST_CASE("hsdp's sum over the copies runs beside the backward of the next unit, over 2x2 ranks") {
  on_ranks(4, [](const World& world) {
    Shardable<StackOfPlain> model;
    auto parallel = parallelize(*model, world, hsdp(2));
    const auto events = std::make_shared<Events>();
    parallel.observe(events);
    model(input()).sum().backward();
    // block3's sum over its shard group is waited for when block2 is done, and all of it only when block1 is.
    CHECK(events->place("+Reduce block3") < events->place("+Backward block2"));
    CHECK(events->place("-Backward block2") < events->place("-Reduce block3"));
    CHECK(events->place("-Backward block1") < events->place("-Reduce block3"));
    CHECK(events->place("-Reduce block4") < events->place("-Backward block0"));  // no more than two at once
    CHECK(events->list.back() == "step 1");
  });
}

TEST_CASE("fsdp reduces a unit while the next runs backward, one at a time, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    Shardable<StackOfPlain> model;
    auto parallel = parallelize(*model, world, fsdp());
    const auto events = std::make_shared<Events>();
    parallel.observe(events);
    model(input()).sum().backward();
    CHECK(events->place("+Reduce block3") < events->place("+Backward block2"));
    CHECK(events->place("-Backward block2") < events->place("-Reduce block3"));
    CHECK(events->place("-Reduce block3") < events->place("+Reduce block2"));
    // Nothing begins that does not end, and nothing twice.
    std::map<std::string, int> open;
    for (const auto& event : events->list) {
      if (event.starts_with("step")) continue;
      const int now = open[event.substr(1)] += event[0] == '+' ? 1 : -1;
      CHECK_MESSAGE((now == 0 || now == 1), event);
    }
    for (const auto& [event, count] : open) CHECK_MESSAGE(count == 0, event);
  });
}

TEST_CASE("the simulator's step has the engine's order of gathers, computing and reductions, over 2 and 2x2 ranks") {
  std::vector<std::pair<Policy, std::int64_t>> cases{{hsdp(2), 1}};
  for (const std::int64_t depth : {0, 1, 2}) {
    for (const bool again : {true, false}) {
      for (const auto keep : {KeepGathered::Never, KeepGathered::Always}) {
        auto policy = fsdp();
        policy.forward_prefetch = policy.backward_prefetch = depth;
        policy.reshard_after_forward = again;
        policy.keep_gathered = keep;
        policy.reduce_every_micro_batch = depth == 2;
        for (const std::int64_t micro_batches : {1, 3}) cases.push_back({policy, micro_batches});
      }
    }
  }
  for (const auto& [policy, micro_batches] : cases) {
    on_ranks(policy.method == ParallelMethod::Hsdp ? 4 : 2, [&](const World& world) {
      Shardable<StackOfPlain> model;
      auto parallel = parallelize(*model, world, policy);
      const auto events = std::make_shared<Events>();
      parallel.observe(events);
      for (int step = 0; step < 2; ++step) {  // the first shows the order of calls
        events->list.clear();
        for (std::int64_t micro = 0; micro < micro_batches; ++micro) {
          parallel.set_micro_batch(micro, micro_batches);
          model(input()).sum().backward();
        }
      }
      CAPTURE(micro_batches);
      CAPTURE(policy.forward_prefetch);
      const bool same = issued_and_ended(events->list) == simulated_order(policy, micro_batches);
      CHECK(same);
    });
  }
}

TEST_CASE("recomputation under ddp with a frozen head is one backward pass with one reduction, over 2 ranks") {
  const auto run = [](const World& world, auto model, const Policy& policy) {
    auto parallel = parallelize(*model, world, policy);
    const auto events = std::make_shared<Events>();
    parallel.observe(events);
    std::int64_t calls = 0;
    for (int step = 0; step < 3; ++step) {  // the first makes the buckets
      calls = parallel.groups().traffic->all_reduce.calls;
      model(input()).sum().backward();
    }
    CHECK(events->count("step 3") == 1);
    CHECK(events->count("step 4") == 0);
    return parallel.groups().traffic->all_reduce.calls - calls;
  };
  on_ranks(2, [&](const World& world) {
    CHECK(run(world, Shardable<StackOfPlain>(true), ddp()) == 1);
    CHECK(run(world, Shardable<StackOfRecomputed>(true), ddp()) == 1);
    CHECK(run(world, Shardable<StackOfRecomputed>(true), fsdp()) == 0);
  });
}

TEST_CASE("a block called directly and recomputed is one backward pass too, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    Shardable<StackOfRecomputed> model;
    auto parallel = parallelize(*model, world, ddp());
    const auto events = std::make_shared<Events>();
    parallel.observe(events);
    auto x = input().set_requires_grad(true);
    for (auto& block : model->blocks) x = block(x);
    x.sum().backward();
    CHECK(events->count("step 1") == 1);
    CHECK(events->count("step 2") == 0);
  });
}

TEST_CASE("an output that is kept with its graph keeps no unit gathered in later backwards, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    Shardable<StackOfPlain> model;
    auto parallel = parallelize(*model, world, fsdp());
    const auto events = std::make_shared<Events>();
    const auto kept = model(input());
    parallel.observe(events);
    const auto whole = [&] {
      std::int64_t count = 0;
      for (auto& block : model->blocks) count += bytes_of(block->parameters()[0]) > 0;
      return count;
    };
    std::int64_t most = 0;
    for (auto& block : model->blocks) {
      block->parameters()[0].register_hook([&](const at::Tensor&) { most = std::max(most, whole()); });
    }
    model(input()).sum().backward();
    CHECK(most <= 3);  // the running one, one gathered ahead, one being freed
    CHECK(events->place("-Backward block4") < events->place("+Backward block2"));
    kept.sum().backward();  // and still can
    CHECK(whole() == 0);
  });
}

TEST_CASE("ranks that may use different parameters hold whole gradients of one unit at a time, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    auto policy = fsdp();
    policy.find_unused_parameters = true;
    Shardable<StackOfPlain> model;
    auto parallel = parallelize(*model, world, policy);
    const auto events = std::make_shared<Events>();
    parallel.observe(events);
    model(input()).sum().backward();
    // Waiting for the sum frees the whole; the shard waits for the ranks' agreement.
    CHECK(events->place("+ReduceWait block4") < events->place("+Reduce block3"));
    CHECK(events->place("+ReduceWait block1") < events->place("+Reduce block0"));
    CHECK(events->place("-Reduce block4") > events->place("+Reduce root"));
  });
}

TEST_CASE("the root's gradients stay in the dtype of the computation until its unit closes, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    auto policy = fsdp();
    policy.precision = parse_precision("mixed");
    Shardable<StackOfPlain> model;
    auto parallel = parallelize(*model, world, policy);
    bool narrow = false;
    const auto head = model->named_parameters()["head.weight"];
    model->blocks[0]->parameters()[0].register_hook([&](const at::Tensor&) {
      narrow = head.grad().defined() && head.grad().scalar_type() == at::kBFloat16 && bytes_of(head.grad()) > 0;
    });
    model(input()).sum().backward();
    CHECK(narrow);
    for (const auto& shard : parallel.named_shards()) {
      const bool wide = shard.tensor.grad().scalar_type() == at::kFloat;
      CHECK(wide);
    }
  });
}

TEST_CASE("units stay gathered between micro-batches where memory is there and ddp would hold no less") {
  const auto choice = [](Policy policy, std::int64_t ranks) {
    std::pair<bool, std::string> chosen;
    on_ranks(ranks, [&](const World& world) {
      Shardable<StackOfPlain> model;
      const auto parallel = parallelize(*model, world, policy);
      if (world.rank == 0) chosen = {parallel.keeps_gathered(), parallel.notes().at(0)};
    });
    return chosen;
  };
  auto policy = fsdp();
  CHECK(choice(policy, 2).first);
  CHECK(choice(policy, 2).second.find("kept") != std::string::npos);
  policy.memory_budget = 4096;
  CHECK_FALSE(choice(policy, 2).first);
  CHECK(choice(policy, 2).second.find("freed, and gathered again for each micro-batch") != std::string::npos);
  policy.keep_gathered = KeepGathered::Always;
  CHECK(choice(policy, 2).first);
  policy = fsdp();
  policy.keep_gathered = KeepGathered::Never;
  CHECK_FALSE(choice(policy, 2).first);
}
