// SPDX-License-Identifier: Apache-2.0
// wrap.hpp: the units that each maker and a user's own function choose, and that a model trains the same with any of
// them.
// Most are plans of one model (tall.hpp), for which no ranks are needed; trained ones are held to one process.
#include "tests/train/tall.hpp"

using namespace sealift::test;

namespace {

const Paths kByBlock{"", "block0", "block1", "block2", "block3", "block4"};
const Paths kAll{"", "tokens", "block0", "block1", "block2", "block3", "block4", "head"};

/// Uses its own parameter after the module within it has run.
class NestImpl : public torch::nn::Module {
 public:
  NestImpl() : own_(register_parameter("own", torch::ones({12}))) {
    inner_ = register_module("inner", Shardable<torch::nn::Linear>(12, 12));
  }
  at::Tensor forward(const at::Tensor& x) { return torch::tanh(inner_(x)) * own_; }

 private:
  at::Tensor own_;
  Shardable<torch::nn::Linear> inner_{nullptr};
};
TORCH_MODULE(Nest);

class TiedHeadImpl : public torch::nn::Module {
 public:
  explicit TiedHeadImpl(const at::Tensor& weight) : weight_(register_parameter("weight", weight)) {}
  at::Tensor forward(const at::Tensor& x) { return torch::linear(x, weight_); }

 private:
  at::Tensor weight_;
};
TORCH_MODULE(TiedHead);

/// The first and the last module hold one weight.
class TiedNetImpl : public torch::nn::Module {
 public:
  TiedNetImpl() {
    tokens_ = register_module("tokens", Shardable<torch::nn::Embedding>(NetImpl::kVocabulary, 12));
    for (const auto* name : {"nest0", "nest1"}) nests_.push_back(register_module(name, Shardable<Nest>()));
    head_ = register_module("head", Shardable<TiedHead>(tokens_->weight));
    fill(*this);
  }
  at::Tensor forward(const at::Tensor& ids) {
    auto hidden = tokens_(ids);
    for (auto& nest : nests_) hidden = hidden + nest(hidden);
    return head_(hidden);
  }

 private:
  Shardable<torch::nn::Embedding> tokens_{nullptr};
  std::vector<Shardable<Nest>> nests_;
  Shardable<TiedHead> head_{nullptr};
};
TORCH_MODULE(TiedNet);

/// The losses of five steps, of the whole batch.
std::vector<double> losses_of_tied(const World& world, const Policy& policy) {
  Shardable<TiedNet> net;
  auto parallel = parallelize(*net, world, policy);
  torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(kLearningRate));
  std::vector<double> losses;
  for (std::int64_t step = 0; step < 5; ++step) {
    optimizer.zero_grad();
    const auto [ids, targets] = batch_of(step);
    const auto rows = kBatch / world.size, first = world.rank * rows;
    const auto loss =
        torch::nn::functional::cross_entropy(net(ids.narrow(0, first, rows)), targets.narrow(0, first, rows));
    loss.backward();
    optimizer.step();
    auto sum = loss.detach().to(torch::kFloat64) / world.size;
    parallel.groups().world.all_reduce(sum).wait();
    losses.push_back(sum.item<double>());
  }
  return losses;
}

std::vector<UnitPlan> plans_of(torch::nn::Module& model, Wrap wrap) {
  auto policy = fsdp();
  policy.wrap = std::move(wrap);
  return plan_units(model, policy);
}

}  // namespace

TEST_CASE("by_block makes a unit of every module of a repeated type, and is the default") {
  CHECK(paths_of(by_block()) == kByBlock);
  CHECK(paths_of(fsdp()) == kByBlock);
}

TEST_CASE("by_block makes a unit of everything in Shardable when no type is repeated") {
  HolderImpl model({{"left", shardable_linear(2, 3)}, {"right", std::make_shared<ShardableImpl<NormedImpl>>()}});
  CHECK(paths_of(model, fsdp()) == Paths{"", "left", "right"});
}

TEST_CASE("either takes what the first leaves, so by_size adds what else is big enough") {
  CHECK(paths_of(either(by_block(), by_size(0))) == kAll);
  CHECK(paths_of(either(by_block(), by_size(801))) ==
        Paths{"", "block0", "block1", "block2", "block3", "block4", "head"});
  CHECK(paths_of(either(root_only(), root_only(), by_path("head"))) == Paths{"", "head"});
  CHECK(paths_of(either(by_block(), by_block())) == kByBlock);
}

TEST_CASE("by_block_group lets consecutive blocks share a unit") {
  CHECK(paths_of(by_block_group(2)) == Paths{"", "block0", "block2", "block4"});
  Shardable<Tall> model;
  const auto plans = plans_of(*model, by_block_group(2));
  CHECK(plans[1].slots.size() == 2);
  CHECK(plans[1].parameters.size() == 8);
  CHECK(plans[3].slots.size() == 1);
  CHECK(paths_of(either(by_block_group(3), by_size(0))) == Paths{"", "tokens", "block0", "block3", "head"});
  CHECK_THROWS_WITH(by_block_group(0), doctest::Contains("by_block_group(0): a unit holds at least 1 block"));
}

TEST_CASE("one_in makes a unit of every k-th block and leaves the others to the root") {
  CHECK(paths_of(one_in(1)) == kByBlock);
  CHECK(paths_of(one_in(2)) == Paths{"", "block0", "block2", "block4"});
  CHECK(paths_of(one_in(4)) == Paths{"", "block0", "block4"});
  Shardable<Tall> model;
  CHECK(plans_of(*model, one_in(5))[0].parameters.size() == 4 * 4 + 1 + 2 + 1);
  CHECK_THROWS_WITH(one_in(0), doctest::Contains("expected at least 1"));
}

TEST_CASE("by_size makes units of what holds enough, from the inside out") {
  CHECK(paths_of(by_size(500)) == Paths{"", "tokens", "head"});
  CHECK(paths_of(by_size(88)) == kAll);
  CHECK(paths_of(by_size()) == Paths{""});  // PyTorch's default of 1e8

  struct OuterImpl : torch::nn::Module {
    OuterImpl() { register_module("inner", Shardable<torch::nn::Linear>(10, 10)); }
    at::Tensor forward(const at::Tensor& x) { return x; }
  };
  HolderImpl model({{"outer", std::make_shared<ShardableImpl<OuterImpl>>()}});
  const auto plans = plans_of(model, by_size(100));
  REQUIRE(plans.size() == 2);  // what the inner unit took no longer counts for the outer one
  CHECK(plans[1].path == "outer.inner");
}

TEST_CASE("by_size does not count a parameter twice that two modules hold, nor one that is ignored") {
  struct TwinsImpl : torch::nn::Module {
    TwinsImpl() {
      const auto one = register_module("one", torch::nn::Linear(10, 10));  // 110 elements
      register_module("same", one);
    }
    at::Tensor forward(const at::Tensor& x) { return x; }
  };
  HolderImpl model({{"twins", std::make_shared<ShardableImpl<TwinsImpl>>()}});
  CHECK(plans_of(model, by_size(110)).size() == 2);
  CHECK(plans_of(model, by_size(111)).size() == 1);
  auto policy = fsdp();
  policy.wrap = by_size(101);
  policy.ignored_parameters = {"twins.*.bias"};
  CHECK(plan_units(model, policy).size() == 1);
  policy.wrap = by_size(100);
  CHECK(plan_units(model, policy).size() == 2);
}

TEST_CASE("root_only makes one unit, and an empty function is refused") {
  CHECK(paths_of(root_only()) == Paths{""});
  CHECK_THROWS_WITH(paths_of(Wrap{}), doctest::Contains("root_only() chooses no units"));
}

TEST_CASE("by_path makes its own unit of what it matches and changes only that") {
  auto policy = fsdp();
  policy.precision = parse_precision("mixed");
  policy.reshard_group = 2;
  policy.wrap = either(by_path("tokens", {.replicate = true}),
                       by_path("block[13]", {.reshard_after_forward = false, .precision = parse_precision("fp32")}));
  Shardable<Tall> model;
  const auto plans = plan_units(*model, policy);
  REQUIRE(plans.size() == 4);
  CHECK(plans[1].path == "tokens");
  CHECK(plans[1].replicate);
  CHECK(plans[1].options.reshard_after_forward);
  CHECK(plans[1].options.reshard_group == 2);
  CHECK(plans[2].path == "block1");
  CHECK_FALSE(plans[2].replicate);
  CHECK_FALSE(plans[2].options.reshard_after_forward);
  CHECK(plans[2].options.reshard_group == 0);
  CHECK((plans[2].options.precision == parse_precision("fp32")));
  CHECK((plans[0].options.precision == parse_precision("mixed")));
}

TEST_CASE("a pattern that matches nothing, or nothing that is left, is refused with the places there are") {
  CHECK_THROWS_WITH(paths_of(by_path("blocks.*")),
                    doctest::Contains("'blocks.*' matches no module that is held in Shardable"));
  CHECK_THROWS_WITH(paths_of(either(by_block(), by_path("block1"))),
                    doctest::Contains("possible units are: tokens, block0, "));
  CHECK_THROWS_WITH(paths_of([](const Candidate& each) { return each.matches("lm_head"); }),
                    doctest::Contains("'lm_head' matches no module"));
}

TEST_CASE("a user's function answers yes or no, or with options, from what is known of a module") {
  CHECK(paths_of([](const Candidate& each) { return each.is_block && each.path != "block0"; }) ==
        Paths{"", "block1", "block2", "block3", "block4"});
  CHECK(paths_of([](const Candidate& each) { return each.module.as<torch::nn::LinearImpl>() != nullptr; }) ==
        Paths{"", "head"});
  Shardable<Tall> model;
  const auto plans = plans_of(*model, [](const Candidate& each) -> UnitChoice {
    if (each.path == "tokens") return UnitOptions{.replicate = true};
    return each.block && *each.block >= 3;
  });
  REQUIRE(plans.size() == 4);
  CHECK(plans[1].replicate);
  CHECK(plans[2].path == "block3");
}

TEST_CASE(
    "a function is asked about each module once, about those within a module first, a shared one by its first path") {
  struct PairImpl : torch::nn::Module {
    PairImpl() { register_module("inner", shardable_linear(2, 2)); }
    at::Tensor forward(const at::Tensor& x) { return x; }
  };
  const auto shared = shardable_linear(3, 3);
  HolderImpl model({{"pair", std::make_shared<ShardableImpl<PairImpl>>()},
                    {"shared", shared},
                    {"again", std::make_shared<HolderImpl>(Children{{"shared", shared}})}});
  Paths asked;
  const auto plans = plans_of(model, [&](const Candidate& each) {
    asked.push_back(each.path);
    return true;
  });
  CHECK(asked == Paths{"shared", "pair.inner", "pair"});
  REQUIRE(plans.size() == 3);  // `pair` holds nothing that `pair.inner` does not
  CHECK(plans[2].path == "shared");
  CHECK(plans[2].parameters.size() == 2);
}

TEST_CASE("modules that share a unit need not be neighbours, and the module between keeps its own") {
  const auto ends = either(by_path("tokens", {.shared = "ends"}), by_path("head", {.shared = "ends"}), by_block());
  CHECK(paths_of(ends) == Paths{"", "tokens", "block0", "block1", "block2", "block3", "block4"});
  Shardable<Tall> model;
  const auto plans = plans_of(*model, ends);
  CHECK(plans[1].slots.size() == 2);
  CHECK(plans[1].numel() == 800 + 900);
}

TEST_CASE("blocks share a unit although a module within one of them is a unit of its own") {
  struct SplitImpl : torch::nn::Module {
    SplitImpl() {
      register_module("inner", shardable_linear(2, 2));
      register_parameter("own", torch::ones({4}));
    }
    at::Tensor forward(const at::Tensor& x) { return x; }
  };
  const auto split = [] { return std::make_shared<ShardableImpl<SplitImpl>>(); };
  HolderImpl model({{"block0", split()}, {"block1", split()}});
  const auto plans = plans_of(model, either(by_path("block0.inner"), by_block_group(2)));
  REQUIRE(plans.size() == 3);
  CHECK(plans[1].path == "block0");
  CHECK(plans[1].slots.size() == 2);
  CHECK(plans[1].numel() == 4 + 4 + 6);  // the inner one of block1 is of a repeated type, but within a block
  CHECK(plans[2].path == "block0.inner");
}

TEST_CASE("a module within one that shares its unit does not end the unit's use") {
  HolderImpl model({{"nest", std::make_shared<ShardableImpl<NestImpl>>()}, {"last", shardable_linear(2, 2)}});
  const auto plans = plans_of(model, [](const Candidate&) { return UnitOptions{.shared = "all"}; });
  REQUIRE(plans.size() == 2);
  CHECK(plans[1].slots.size() == 2);  // nest and last, not nest.inner
  CHECK(plans[1].parameters.size() == 5);
}

TEST_CASE("modules that share a unit with different options are refused by name") {
  CHECK_THROWS_WITH(
      paths_of(either(by_path("tokens", {.replicate = true, .shared = "ends"}), by_path("head", {.shared = "ends"}))),
      doctest::Contains("modules 'tokens' and 'head' share unit 'ends' but have other options"));
}

TEST_CASE("however a model is wrapped it trains as one process does, over 2 ranks") {
  const std::map<std::string, Wrap> wraps = {
      {"groups of two", by_block_group(2)},
      {"one in two", one_in(2)},
      {"the first and the last together",
       [](const Candidate& each) -> UnitChoice {
         if (each.path == "layer0" || each.path == "layer2") return UnitOptions{.shared = "ends"};
         return each.is_block;
       }},
      {"one kept until backward, one replicated",
       either(by_path("layer0", {.reshard_after_forward = false}), by_path("layer1", {.replicate = true}), by_block())},
  };
  for (const auto& [name, wrap] : wraps) {
    CAPTURE(name);
    for (auto policy : {fsdp(), ddp()}) {
      policy.wrap = wrap;
      check_same(train_on_ranks(2, policy), one_process());
      check_same(train_on_ranks(2, policy, {.micro_batches = 2}), one_process());
    }
  }
}

TEST_CASE(
    "a weight that the first and the last module share, and a module within one of its unit, train as in one "
    "process, over 2 ranks") {
  const auto expected = losses_of_tied({}, {});
  const std::map<std::string, Wrap> wraps = {
      {"the ends share",
       either(by_path("tokens", {.shared = "ends"}), by_path("head", {.shared = "ends"}), by_block())},
      {"each with what is within it", either(by_path("nest0*", {.shared = "0"}), by_path("nest1*", {.shared = "1"}))},
      {"all share", [](const Candidate&) { return UnitOptions{.shared = "all"}; }},
  };
  for (const auto& [name, wrap] : wraps) {
    CAPTURE(name);
    auto policy = fsdp();
    policy.wrap = wrap;
    on_ranks(2, [&](const World& world) {
      const auto got = losses_of_tied(world, policy);
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-5));
    });
  }
}
