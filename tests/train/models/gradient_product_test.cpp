// SPDX-License-Identifier: Apache-2.0
// Products that add themselves to the engine's gradients, as plain autograd has them: a weight that is used twice, one
// that somebody listens to, several micro-batches and ranks. They are counted, since a gradient that is a tensor first
// has the same numbers.
#include "tests/support/ranks.hpp"
#include "trainer/models/projection.hpp"

#include <ATen/record_function.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/graph_task.h>

#include <atomic>

using namespace sealift;
using namespace sealift::trainer;
using sealift::test::on_ranks;

namespace {

constexpr std::int64_t kRanks = 2, kMicroBatches = 3;

/// Two projections, each used twice.
struct TwiceImpl : torch::nn::Module {
  Projection in{register_module("in", Projection(6, 8, true))}, out{register_module("out", Projection(8, 6, false))};

  at::Tensor forward(const at::Tensor& x) { return out(torch::tanh(in(x))) + out(torch::tanh(in(x * 0.5))); }
};
TORCH_MODULE(Twice);

struct RootOfTwiceImpl : torch::nn::Module {
  train::Shardable<Twice> first{register_module("first", train::Shardable<Twice>())},
      second{register_module("second", train::Shardable<Twice>())};

  at::Tensor forward(const at::Tensor& x) { return second(first(x)); }
};
TORCH_MODULE(RootOfTwice);

void fill_values(torch::nn::Module& module) {
  at::NoGradGuard no_grad;
  double phase = 0;
  for (auto& each : module.parameters()) {
    each.copy_(torch::sin(torch::arange(each.numel()).view(each.sizes()) * 0.7 + ++phase) * 0.4);
  }
}

at::Tensor loss_of(train::Shardable<RootOfTwice>& model, std::int64_t micro, std::int64_t rank) {
  const auto number = static_cast<double>(micro * kRanks + rank);
  return model(torch::cos(torch::arange(30).view({5, 6}) * 0.3 + number)).pow(2).mean() / kMicroBatches;
}

/// By name; with one process, of the mean over the ranks' rows.
std::map<std::string, at::Tensor> plain_gradients() {
  train::Shardable<RootOfTwice> model;
  fill_values(*model);
  for (std::int64_t i = 0; i < kMicroBatches * kRanks; ++i)
    (loss_of(model, i / kRanks, i % kRanks) / kRanks).backward();
  std::map<std::string, at::Tensor> gradients;
  for (const auto& item : model->named_parameters()) gradients[item.key()] = item.value().grad();
  return gradients;
}

double norm_of(const std::map<std::string, at::Tensor>& gradients) {
  double sum = 0;
  for (const auto& [name, gradient] : gradients) sum += gradient.pow(2).sum().item<double>();
  return std::sqrt(sum);
}

std::atomic<std::int64_t> products{0};

/// While it lives, counts the products that add themselves to a buffer in a backward: nothing else here asks for
/// addmm.out there.
class CountedProducts {
 public:
  CountedProducts()
      : handle_(at::addGlobalCallback(at::RecordFunctionCallback(&see).scopes({at::RecordScope::FUNCTION}))) {
    products = 0;
  }
  ~CountedProducts() { at::removeCallback(handle_); }
  CountedProducts(const CountedProducts&) = delete;
  CountedProducts& operator=(const CountedProducts&) = delete;

 private:
  static std::unique_ptr<at::ObserverContext> see(const at::RecordFunction& function) {
    const auto name = function.operator_name();
    const bool adds = name && name->name == "aten::addmm" && name->overload_name == "out";
    if (adds && torch::autograd::get_current_graph_task_id() != -1) ++products;
    return nullptr;
  }

  at::CallbackHandle handle_;
};

/// Of one backward: two units of two projections, each of which is used twice.
constexpr std::int64_t kProducts = 8;

}  // namespace

TEST_CASE("a weight that is used twice gets the gradient of both uses, over micro-batches and ranks") {
  const auto expected = plain_gradients();
  for (const auto method : {train::ParallelMethod::Ddp, train::ParallelMethod::Fsdp}) {
    const CountedProducts counted;
    on_ranks(kRanks, [&](const train::World& world) {
      const train::Policy policy{.method = method};
      train::Shardable<RootOfTwice> model;
      fill_values(*model);
      auto parallel = train::parallelize(*model, train::make_groups(world, train::make_mesh(policy, kRanks)), policy);
      for (std::int64_t micro = 0; micro < kMicroBatches; ++micro) {
        parallel.set_micro_batch(micro, kMicroBatches);
        loss_of(model, micro, world.rank).backward();
      }
      CHECK(train::gradient_norm(parallel) == doctest::Approx(norm_of(expected)).epsilon(1e-5));
      if (method != train::ParallelMethod::Ddp) return;
      for (const auto& [name, shard] : parallel.named_shards()) {
        CHECK_MESSAGE(at::allclose(shard.grad(), expected.at(name), 1e-5, 1e-6), name);
      }
    });
    CHECK(products == kRanks * kMicroBatches * kProducts);
  }
}

TEST_CASE("who listens to a weight's gradient hears the whole of it") {
  const CountedProducts counted;
  on_ranks(kRanks, [&](const train::World& world) {
    const train::Policy policy{.method = train::ParallelMethod::Ddp};
    train::Shardable<RootOfTwice> model;
    fill_values(*model);
    auto parallel = train::parallelize(*model, train::make_groups(world, train::make_mesh(policy, kRanks)), policy);
    auto weight = model->first->in->weight;
    std::vector<at::Tensor> heard;
    const auto hook = weight.register_hook([&](const at::Tensor& gradient) { heard.push_back(gradient.clone()); });
    loss_of(model, 0, /*rank=*/0).backward();
    REQUIRE(heard.size() == 1);
    CHECK(at::allclose(heard[0], weight.grad(), 1e-5, 1e-6));  // both ranks had the same rows
    weight.remove_hook(hook);
    loss_of(model, 0, 0).backward();
    CHECK(heard.size() == 1);
    CHECK(at::allclose(weight.grad(), heard[0] * 2, 1e-5, 1e-6));
  });
  CHECK(products == kRanks * (2 * kProducts - 2));  // without the two uses that were heard
}
