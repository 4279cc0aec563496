// SPDX-License-Identifier: Apache-2.0
// unit_plan.hpp: the units that each wrapping strategy makes of one model, and what overrides and ignored names change.
// A plan needs only a model and a policy, so there are no ranks here.
// The model: an embedding, five blocks with a norm each, a head; all held in Shardable.
#include "fixture.hpp"

using namespace sealift::test;
using Paths = std::vector<std::string>;

namespace {

class NormedImpl : public torch::nn::Module {
 public:
  NormedImpl() : norm_(torch::nn::LayerNormOptions({8})), linear_(register_module("linear", torch::nn::Linear(8, 8))) {
    register_module("norm", norm_);
  }
  at::Tensor forward(const at::Tensor& x) { return x + linear_(norm_(x)); }

 private:
  torch::nn::LayerNorm norm_;
  torch::nn::Linear linear_;
};
TORCH_MODULE(Normed);

class TallImpl : public torch::nn::Module {
 public:
  TallImpl() {
    register_module("tokens", Shardable<torch::nn::Embedding>(100, 8));
    for (int i = 0; i < 5; ++i) register_module("block" + std::to_string(i), Shardable<Normed>());
    register_module("head", Shardable<torch::nn::Linear>(8, 100));
    register_parameter("gain", torch::ones({1}));
  }
  at::Tensor forward(const at::Tensor& x) { return x; }
};
TORCH_MODULE(Tall);

Paths paths_of(const Policy& policy) {
  Shardable<Tall> model;
  Paths paths;
  for (const auto& plan : plan_units(*model, policy)) paths.push_back(plan.path);
  return paths;
}

Policy named(const char* strategy, std::int64_t blocks = 1, std::int64_t min_numel = 0) {
  Policy policy{.method = ParallelMethod::Fsdp, .blocks = blocks, .min_numel = min_numel};
  set_wrapping_strategy(policy, strategy);
  return policy;
}

}  // namespace

TEST_CASE("by_block makes a unit of every module of a repeated type") {
  CHECK(paths_of(named("by_block")) == Paths{"", "block0", "block1", "block2", "block3", "block4"});
}

TEST_CASE("by_block_and_size adds what else is big enough") {
  CHECK(paths_of(named("by_block_and_size")) ==
        Paths{"", "tokens", "block0", "block1", "block2", "block3", "block4", "head"});
  CHECK(paths_of(named("by_block_and_size", 1, 801)) ==
        Paths{"", "block0", "block1", "block2", "block3", "block4", "head"});
}

TEST_CASE("by_block_group lets consecutive blocks share a unit") {
  CHECK(paths_of(named("by_block_group", 2)) == Paths{"", "block0", "block2", "block4"});
  Shardable<Tall> model;
  const auto plans = plan_units(*model, named("by_block_group", 2));
  CHECK(plans[1].slots.size() == 2);
  CHECK(plans[1].parameters.size() == 8);
  CHECK(plans[3].slots.size() == 1);
  CHECK(paths_of(named("by_block_group_and_size", 3)) == Paths{"", "tokens", "block0", "block3", "head"});
}

TEST_CASE("one_in_k makes a unit of every k-th block and leaves the others to the root") {
  CHECK(paths_of(named("one_in_two")) == Paths{"", "block0", "block2", "block4"});
  CHECK(paths_of(named("one_in_three")) == Paths{"", "block0", "block3"});
  CHECK(paths_of(named("one_in_four")) == Paths{"", "block0", "block4"});
  CHECK(paths_of(named("one_in_five")) == Paths{"", "block0"});
  CHECK(paths_of(named("one_in_k", 4)) == Paths{"", "block0", "block4"});
  Shardable<Tall> model;
  const auto plans = plan_units(*model, named("one_in_five"));
  CHECK(plans[0].parameters.size() == 4 * 4 + 1 + 2 + 1);
}

TEST_CASE("size_based makes units of what holds enough, from the inside out") {
  CHECK(paths_of(named("size_based", 1, 500)) == Paths{"", "tokens", "head"});
  CHECK(paths_of(named("size_based", 1, 88)) ==
        Paths{"", "tokens", "block0", "block1", "block2", "block3", "block4", "head"});
  CHECK(paths_of(named("size_based")) == Paths{""});  // PyTorch's default of 1e8

  struct OuterImpl : torch::nn::Module {
    OuterImpl() { register_module("inner", Shardable<torch::nn::Linear>(10, 10)); }
    at::Tensor forward(const at::Tensor& x) { return x; }
  };
  struct RootImpl : torch::nn::Module {
    RootImpl() { register_module("outer", std::make_shared<ShardableImpl<OuterImpl>>()); }
    at::Tensor forward(const at::Tensor& x) { return x; }
  };
  ShardableImpl<RootImpl> root;
  const auto plans = plan_units(root, named("size_based", 1, 100));
  REQUIRE(plans.size() == 2);  // what the inner unit took no longer counts for the outer one
  CHECK(plans[1].path == "outer.inner");
}

TEST_CASE("root_only makes one unit") {
  CHECK(paths_of(named("root_only")) == Paths{""});
}

TEST_CASE("an unknown wrapping strategy is refused with the names that there are") {
  Policy policy;
  CHECK_THROWS_WITH(set_wrapping_strategy(policy, "by_moon"), doctest::Contains("use one of by_block, "));
}

TEST_CASE("an override makes its own unit of what it matches and changes only that") {
  auto policy = named("root_only");
  policy.overrides = {{.path = "tokens", .replicate = true},
                      {.path = "block[13]", .reshard_after_forward = false, .precision = parse_precision("fp32")}};
  policy.precision = parse_precision("mixed");
  Shardable<Tall> model;
  const auto plans = plan_units(*model, policy);
  REQUIRE(plans.size() == 4);
  CHECK(plans[1].path == "tokens");
  CHECK(plans[1].replicate);
  CHECK(plans[2].path == "block1");
  CHECK_FALSE(plans[2].options.reshard_after_forward);
  CHECK((plans[2].options.precision == parse_precision("fp32")));
  CHECK((plans[0].options.precision == parse_precision("mixed")));
}

TEST_CASE("an override that matches nothing is refused with the places there are") {
  auto policy = named("by_block");
  policy.overrides = {{.path = "blocks.*"}};
  CHECK_THROWS_WITH(paths_of(policy), doctest::Contains("possible units are: tokens, block0, "));
}

TEST_CASE("ignored parameters are in no unit") {
  auto policy = named("by_block");
  policy.ignored_parameters = {"*.norm.*", "gain"};
  Shardable<Tall> model;
  std::size_t count = 0;
  for (const auto& plan : plan_units(*model, policy)) {
    for (const auto& parameter : plan.parameters) {
      CHECK(parameter.name.find("norm") == std::string::npos);
      CHECK(parameter.name != "gain");
      ++count;
    }
  }
  CHECK(count == 5 * 2 + 1 + 2);
}

TEST_CASE("units that are too small or hold most of the model are warned of") {
  Shardable<Tall> model;
  const auto warnings = unit_warnings(plan_units(*model, named("by_block")));
  REQUIRE(warnings.size() == 6);
  CHECK(warnings[0].find("unit 'block0' holds only 88 elements") != std::string::npos);
  CHECK(warnings[5].find("the root's unit holds 1701 of the model's 2141 elements") != std::string::npos);
  CHECK(unit_warnings(plan_units(*model, named("root_only"))).empty());
}

TEST_CASE("sharding strategies of FSDP1 and precisions of OLMo are understood by what they keep") {
  Policy policy;
  set_sharding_strategy(policy, "SHARD_GRAD_OP");
  CHECK(policy.method == ParallelMethod::Fsdp);
  CHECK_FALSE(policy.reshard_after_forward);
  set_sharding_strategy(policy, "HYBRID_SHARD");
  CHECK(policy.method == ParallelMethod::Hsdp);
  CHECK(policy.reshard_after_forward);
  set_sharding_strategy(policy, "_HYBRID_SHARD_ZERO2");
  CHECK_FALSE(policy.reshard_after_forward);
  set_sharding_strategy(policy, "FULL_SHARD");
  CHECK(policy.reshard_after_forward);
  set_sharding_strategy(policy, "NO_SHARD");
  CHECK(policy.method == ParallelMethod::Ddp);
  CHECK_THROWS_WITH(set_sharding_strategy(policy, "ZERO"), doctest::Contains("use one of FULL_SHARD"));
  set_backward_prefetch(policy, "NONE");
  CHECK(policy.backward_prefetch == 0);
  set_backward_prefetch(policy, "BACKWARD_PRE");
  CHECK(policy.backward_prefetch == 1);
  CHECK_THROWS_WITH(set_backward_prefetch(policy, "BACKWARD_POST"), doctest::Contains("is not offered"));
  CHECK((parse_precision("pure").reduce_dtype == at::kBFloat16));
  CHECK((parse_precision("mixed").reduce_dtype == at::kFloat));
  CHECK_THROWS_WITH(parse_precision("half"), doctest::Contains("use one of fp32, mixed, pure"));
}
