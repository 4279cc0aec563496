// SPDX-License-Identifier: Apache-2.0
// unit_plan.hpp: which unit a parameter and a buffer belong to, and what is refused or warned of.
// A plan needs only a model and a policy, so there are no ranks but for the casts that parallelize makes from it.
// Which modules become units is wrap_test.cpp's.
#include "tests/train/tall.hpp"

using namespace sealift::test;

namespace {

/// A block with a floating buffer, an integral one, and parameters and buffers that are not defined.
class CountingImpl : public torch::nn::Module {
 public:
  CountingImpl() {
    scale = register_buffer("scale", torch::full({3}, 1 + 1.0 / 512));  // not a bf16 number
    calls = register_buffer("calls", torch::zeros({}, torch::kInt64));
    weight = register_parameter("weight", torch::ones({3}));
    register_module("plain", torch::nn::Linear(torch::nn::LinearOptions(3, 3).bias(false)));
    register_module("norm", torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(3).track_running_stats(false)));
  }
  at::Tensor forward(const at::Tensor& x) {
    calls += 1;
    return x * weight * scale;
  }

  at::Tensor scale, calls, weight;
};
TORCH_MODULE(Counting);

class TwoCountersImpl : public torch::nn::Module {
 public:
  TwoCountersImpl() {
    first = register_module("first", Shardable<Counting>());
    second = register_module("second", Shardable<Counting>());
    offset = register_buffer("offset", torch::full({3}, 1 + 1.0 / 512));
  }
  at::Tensor forward(const at::Tensor& x) { return second(first(x)) + offset; }

  Shardable<Counting> first{nullptr}, second{nullptr};
  at::Tensor offset;
};
TORCH_MODULE(TwoCounters);

}  // namespace

TEST_CASE("parameters tied across units are refused by both names, and allowed in a unit that both share") {
  const auto head = shardable_linear(8, 100);
  HolderImpl model({{"tokens", std::make_shared<ShardableImpl<torch::nn::EmbeddingImpl>>(100, 8)}, {"head", head}});
  auto policy = fsdp();
  CHECK(plan_units(model, policy).size() == 3);
  struct TiedImpl : torch::nn::Module {
    explicit TiedImpl(const at::Tensor& weight) { register_parameter("weight", weight); }
    at::Tensor forward(const at::Tensor& x) { return x; }
  };
  HolderImpl tied({{"tokens", std::make_shared<ShardableImpl<TiedImpl>>(head->weight)}, {"head", head}});
  CHECK_THROWS_WITH(plan_units(tied, policy), doctest::Contains("parameters 'tokens.weight' and 'head.weight' are tied "
                                                                "but lie in units 'tokens' and 'head'"));
  policy.wrap = either(by_path("tokens", {.shared = "ends"}), by_path("head", {.shared = "ends"}));
  const auto plans = plan_units(tied, policy);
  REQUIRE(plans.size() == 2);
  CHECK(plans[1].slots.size() == 2);
  CHECK(plans[1].parameters.size() == 2);  // the weight once, and the bias
  policy.wrap = root_only();
  CHECK(plan_units(tied, policy)[0].parameters.size() == 2);
}

TEST_CASE("a module that two blocks hold is one unit, or ties them") {
  struct UserImpl : torch::nn::Module {
    explicit UserImpl(std::shared_ptr<torch::nn::Module> shared) {
      register_module("shared", std::move(shared));
      register_parameter("own", torch::ones({2}));
    }
    at::Tensor forward(const at::Tensor& x) { return x; }
  };
  const auto shared = shardable_linear(2, 2);
  HolderImpl model({{"left", std::make_shared<ShardableImpl<UserImpl>>(shared)},
                    {"right", std::make_shared<ShardableImpl<UserImpl>>(shared)}});
  auto policy = fsdp();
  policy.wrap = either(by_path("*.shared"), by_block());
  CHECK(paths_of(model, policy) == Paths{"", "left", "left.shared", "right"});
  policy.wrap = by_block();
  CHECK_THROWS_WITH(plan_units(model, policy), doctest::Contains("'left.shared.weight' and 'right.shared.weight'"));
}

TEST_CASE("ignored parameters are in no unit, and a unit that would hold nothing else is not made") {
  auto policy = fsdp();
  policy.ignored_parameters = {"*.norm.*", "gain", "block3.*"};
  Shardable<Tall> model;
  std::size_t count = 0;
  const auto plans = plan_units(*model, policy);
  for (const auto& plan : plans) {
    for (const auto& parameter : plan.parameters) {
      CHECK(parameter.name.find("norm") == std::string::npos);
      CHECK(parameter.name != "gain");
      ++count;
    }
  }
  CHECK(count == 4 * 2 + 1 + 2);
  CHECK(paths_of(policy) == Paths{"", "block0", "block1", "block2", "block4"});
}

TEST_CASE("ignored_parameters that match nothing are refused") {
  auto policy = fsdp();
  policy.ignored_parameters = {"gain", "*.nrom.*"};
  CHECK_THROWS_WITH(paths_of(policy), doctest::Contains("'*.nrom.*', which matches no parameter"));
}

TEST_CASE("units that are too small or hold most of the model are warned of") {
  Shardable<Tall> model;
  auto policy = fsdp();
  const auto warnings = unit_warnings(plan_units(*model, policy));
  REQUIRE(warnings.size() == 6);
  CHECK(warnings[0].find("unit 'block0' holds only 88 elements") != std::string::npos);
  CHECK(warnings[5].find("the root's unit holds 1701 of the model's 2141 elements") != std::string::npos);
  policy.wrap = root_only();
  CHECK(unit_warnings(plan_units(*model, policy)).empty());
}

TEST_CASE("buffer_dtype casts floating buffers once, where their unit says so, and the model sees it, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    for (auto policy : {fsdp(), ddp()}) {
      policy.precision.buffer_dtype = at::kBFloat16;
      policy.wrap = either(by_path("second", {.precision = MixedPrecision{}}), by_block());
      Shardable<TwoCounters> model;
      model->offset.add_(static_cast<double>(world.rank));  // rank 0's values are everyone's
      const auto kept = model->first->scale;
      const auto parallel = parallelize(*model, groups_of(world, policy), policy);
      CHECK((model->offset.scalar_type() == at::kBFloat16));
      CHECK(model->offset.equal(torch::ones({3}, at::kBFloat16)));
      CHECK((model->first->scale.scalar_type() == at::kBFloat16));
      CHECK(model->first->named_buffers()["scale"].is_same(kept));
      CHECK(model->first->scale.is_same(kept));
      CHECK((model->first->calls.scalar_type() == at::kLong));
      CHECK((model->second->scale.scalar_type() == at::kFloat));
      CHECK(model(torch::ones({3})).equal(torch::full({3}, 1 + 1.0 / 512) + 1));
      CHECK(model->first->calls.item<std::int64_t>() == 1);
    }
  });
}
