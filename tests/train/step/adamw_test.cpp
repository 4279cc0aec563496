// SPDX-License-Identifier: Apache-2.0
// The fused optimizer against torch::optim::AdamW on the same gradients.
// Groups, schedules and saved states are made for one and used by the other, as a drop-in must allow.
// Moments on the host are copied here too: a derived class turns that on without a device.
#include "tests/train/fixture.hpp"

#include <sstream>

using namespace sealift::test;

namespace {

using torch::optim::AdamW;
using torch::optim::AdamWOptions;

/// Copies moments although the parameters are on the host.
class Streamed : public FusedAdamW {
 public:
  using FusedAdamW::FusedAdamW;

 protected:
  bool streams(const at::Tensor&) const override { return true; }
};

/// Leaves of the shapes that shards have: matrices, a scalar, an empty one, one without a gradient.
std::vector<at::Tensor> make_parameters(at::ScalarType dtype = torch::kFloat32) {
  std::vector<at::Tensor> parameters;
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{{7, 5}, {33}, {}, {0}, {128, 17}, {4}}) {
    const auto numel = torch::ones(shape).numel();
    parameters.push_back(
        torch::sin(torch::arange(numel, torch::kFloat64) + 1.0).view(shape).to(dtype).requires_grad_());
  }
  return parameters;
}

/// Gradients of a step; the last parameter never gets one.
void set_gradients(const std::vector<at::Tensor>& parameters, std::int64_t step) {
  for (std::size_t i = 0; i + 1 < parameters.size(); ++i) {
    const auto& parameter = parameters[i];
    auto gradient = torch::cos(torch::arange(parameter.numel(), torch::kFloat64) * 0.7 + static_cast<double>(step));
    parameter.mutable_grad() = gradient.view(parameter.sizes()).to(parameter.scalar_type());
  }
}

std::vector<torch::optim::OptimizerParamGroup> make_groups_of(const std::vector<at::Tensor>& parameters) {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<at::Tensor>(parameters.begin(), parameters.begin() + 3),
                      std::make_unique<AdamWOptions>(AdamWOptions(2e-2).weight_decay(0.1)));
  groups.emplace_back(std::vector<at::Tensor>(parameters.begin() + 3, parameters.end()),
                      std::make_unique<AdamWOptions>(AdamWOptions(1e-2).weight_decay(0).betas({0.8, 0.99})));
  return groups;
}

void check_close(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& expected) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i].allclose(expected[i], 1e-6, 2e-7));
  }
}

void run_steps(torch::optim::Optimizer& optimizer, const std::vector<at::Tensor>& parameters, std::int64_t steps) {
  torch::optim::StepLR schedule(optimizer, 3, 0.5);
  for (std::int64_t step = 0; step < steps; ++step) {
    set_gradients(parameters, step);
    optimizer.step();
    schedule.step();
  }
}

/// Ten steps with `Optimizer` from the same start.
template <class Optimizer, class... Extra>
std::vector<at::Tensor> train_with(bool amsgrad, Extra... extra) {
  auto parameters = make_parameters();
  auto groups = make_groups_of(parameters);
  for (auto& group : groups) static_cast<AdamWOptions&>(group.options()).amsgrad(amsgrad);
  Optimizer optimizer(groups, AdamWOptions(), extra...);
  run_steps(optimizer, parameters, 10);
  return parameters;
}

}  // namespace

TEST_CASE("ten fused steps with two groups and a schedule end where torch::optim::AdamW does") {
  for (const bool amsgrad : {false, true}) {
    CAPTURE(amsgrad);
    const auto expected = train_with<AdamW>(amsgrad);
    check_close(train_with<FusedAdamW>(amsgrad), expected);
    check_close(train_with<FusedAdamW>(amsgrad, Moments::OnHost), expected);
  }
}

TEST_CASE("moments on the host are copied twice each per step and change no bit") {
  for (const bool amsgrad : {false, true}) {
    const auto expected = train_with<FusedAdamW>(amsgrad);
    const auto got = train_with<Streamed>(amsgrad, Moments::OnHost);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i].equal(expected[i]));
  }
  auto parameters = make_parameters();
  Streamed optimizer(parameters, AdamWOptions(), Moments::OnHost);
  set_gradients(parameters, 0);
  optimizer.step();
  CHECK(optimizer.copies() == 4 * 4);  // there and back, two moments, of the four that have elements and a gradient
}

TEST_CASE("a parameter on the host is stepped there, without copies") {
  auto parameters = make_parameters();
  FusedAdamW optimizer(parameters, AdamWOptions(), Moments::OnHost);
  set_gradients(parameters, 0);
  optimizer.step();
  CHECK(optimizer.copies() == 0);
}

TEST_CASE("a parameter without a gradient keeps its value and gets no state") {
  auto parameters = make_parameters();
  const auto before = parameters.back().detach().clone();
  FusedAdamW optimizer(parameters, AdamWOptions(0.1));
  set_gradients(parameters, 0);
  optimizer.step();
  CHECK(parameters.back().equal(before));
  CHECK(optimizer.state().count(parameters.back().unsafeGetTensorImpl()) == 0);
  CHECK(optimizer.state().size() == parameters.size() - 1);
}

TEST_CASE("a parameter that gets its first gradient late is corrected for its own steps") {
  const auto run = [](auto& optimizer, std::vector<at::Tensor>& parameters) {
    for (std::int64_t step = 0; step < 6; ++step) {
      set_gradients(parameters, step);
      if (step >= 3) parameters.back().mutable_grad() = torch::ones_like(parameters.back());
      optimizer.step();
    }
  };
  auto expected = make_parameters(), got = make_parameters();
  AdamW reference(expected, AdamWOptions(1e-2));
  FusedAdamW fused(got, AdamWOptions(1e-2));
  run(reference, expected);
  run(fused, got);
  check_close(got, expected);
}

TEST_CASE("a state saved by torch::optim::AdamW is continued, and the other way round") {
  const auto run = [](torch::optim::Optimizer& optimizer, const std::vector<at::Tensor>& parameters, std::int64_t first,
                      std::int64_t end) {
    for (std::int64_t step = first; step < end; ++step) {
      set_gradients(parameters, step);
      optimizer.step();
    }
  };
  auto expected = make_parameters();
  AdamW uninterrupted(make_groups_of(expected), AdamWOptions());
  run(uninterrupted, expected, 0, 10);
  const auto continue_with = [&](auto first, auto second) {
    auto parameters = make_parameters();
    typename decltype(first)::type one(make_groups_of(parameters), AdamWOptions());
    run(one, parameters, 0, 6);
    std::stringstream file;
    torch::serialize::OutputArchive out;
    one.save(out);
    out.save_to(file);

    typename decltype(second)::type two(make_groups_of(parameters), AdamWOptions());
    torch::serialize::InputArchive in;
    in.load_from(file);
    two.load(in);
    run(two, parameters, 6, 10);
    check_close(parameters, expected);
  };
  continue_with(std::type_identity<AdamW>{}, std::type_identity<FusedAdamW>{});
  continue_with(std::type_identity<FusedAdamW>{}, std::type_identity<AdamW>{});
}

TEST_CASE("gradients of another layout or dtype are stepped as values, not as memory") {
  const auto run = [](auto&& optimizer, const at::Tensor& parameter, const at::Tensor& gradient) {
    parameter.mutable_grad() = gradient;
    optimizer.step();
    return parameter.detach().clone();
  };
  const auto start = torch::sin(torch::arange(12.0)).view({3, 4});
  const auto transposed = torch::cos(torch::arange(12.0)).view({4, 3}).t();
  auto one = start.clone().requires_grad_(), two = start.clone().requires_grad_();
  CHECK(run(FusedAdamW({one}, AdamWOptions(0.1)), one, transposed)
            .allclose(run(AdamW({two}, AdamWOptions(0.1)), two, transposed), 1e-6));
}

TEST_CASE("half precision parameters are stepped within their precision") {
  for (const auto dtype : {torch::kBFloat16, torch::kHalf}) {
    auto expected = make_parameters(), got = make_parameters(dtype);
    AdamW reference(expected, AdamWOptions(1e-2));
    FusedAdamW fused(got, AdamWOptions(1e-2));
    for (std::int64_t step = 0; step < 3; ++step) {
      set_gradients(expected, step);
      set_gradients(got, step);
      reference.step();
      fused.step();
    }
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(got[i].to(torch::kFloat32).allclose(expected[i], 1e-2, 1e-2));
    }
  }
}

TEST_CASE("a closure is evaluated with gradients on and its loss returned") {
  auto parameter = torch::ones({3}).requires_grad_();
  FusedAdamW optimizer({parameter}, AdamWOptions(0.1));
  const auto loss = optimizer.step([&] {
    auto value = parameter.square().sum();
    value.backward();
    return value;
  });
  CHECK(loss.item<double>() == 3);
  CHECK(parameter.detach().lt(1).all().item<bool>());
}

TEST_CASE("a sparse gradient is refused with the remedy") {
  torch::nn::Embedding table(torch::nn::EmbeddingOptions(5, 2).sparse(true));
  table(torch::tensor({1})).sum().backward();
  FusedAdamW optimizer(table->parameters());
  CHECK_THROWS_WITH_AS(optimizer.step(), doctest::Contains("sparse(false)"), c10::Error);
}

TEST_CASE("the fused optimizer trains shards as AdamW trains them, over 1, 2 and 4 ranks") {
  for (const std::int64_t ranks : {1, 2, 4}) {
    CAPTURE(ranks);
    on_ranks(ranks, [&](const World& world) {
      const Policy policy{.method = ParallelMethod::Fsdp};
      const auto losses = [&](const std::string& name, auto make_optimizer) {
        auto place = world;
        place.store = c10::make_intrusive<c10d::PrefixStore>(name, world.store);
        Shardable<Net> net;
        auto parallel = parallelize(*net, make_groups(place, make_mesh(policy, ranks)), policy);
        auto optimizer = make_optimizer(parallel.shards());
        parallel.check_optimizer(*optimizer);
        std::vector<double> result;
        for (std::int64_t step = 0; step < 5; ++step) {
          optimizer->zero_grad();
          const auto [ids, targets] = batch_of(step);
          const auto loss = torch::nn::functional::cross_entropy(net(ids), targets);
          loss.backward();
          optimizer->step();
          result.push_back(loss.template item<double>());
        }
        return result;
      };
      const AdamWOptions options(kLearningRate);
      const auto expected = losses("plain", [&](auto shards) { return std::make_unique<AdamW>(shards, options); });
      const auto got = losses("fused", [&](auto shards) { return std::make_unique<FusedAdamW>(shards, options); });
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-5));
    });
  }
}
