// SPDX-License-Identifier: Apache-2.0
// The training core on GPUs: NCCL's collectives against whole numbers, and the engine against itself on the CPU.
// Ranks are threads with a GPU each, as many as there are; with one GPU, cases that need two ranks are left out.
// Without a GPU it says so and ends with 77, which ctest reports as skipped.
#include <sealift/train.hpp>

#include "tests/support/ranks.hpp"

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>

#include <iostream>

namespace {

using namespace sealift::train;
using sealift::test::on_ranks;

at::Device gpu(std::int64_t rank) {
  return {at::kCUDA, static_cast<c10::DeviceIndex>(rank)};
}

class LayerImpl : public torch::nn::Module {
 public:
  LayerImpl() : linear_(register_module("linear", torch::nn::Linear(48, 48))) {}
  at::Tensor forward(const at::Tensor& x) { return x + torch::tanh(linear_(x)); }

 private:
  torch::nn::Linear linear_;
};
TORCH_MODULE(Layer);

class ModelImpl : public torch::nn::Module {
 public:
  ModelImpl() {
    for (int i = 0; i < 3; ++i) layers_.push_back(register_module("layer" + std::to_string(i), Shardable<Layer>()));
    head_ = register_module("head", torch::nn::Linear(48, 1));
    at::NoGradGuard no_grad;
    for (auto& parameter : parameters()) {
      parameter.copy_(torch::sin(torch::arange(parameter.numel()).view(parameter.sizes()) * 0.7) * 0.2);
    }
  }
  at::Tensor forward(at::Tensor x) {
    for (auto& layer : layers_) x = layer(x);
    return head_(x);
  }

 private:
  std::vector<Shardable<Layer>> layers_;
  torch::nn::Linear head_{nullptr};
};
TORCH_MODULE(Model);

/// The losses of a few AdamW steps as one rank on `world.device`, the mean over ranks.
std::vector<double> train(const World& world, ParallelMethod method) {
  const Policy policy{.method = method};
  auto groups = make_groups(world, make_mesh(policy, world.size));
  Shardable<Model> model;
  model->to(world.device);
  auto parallel = parallelize(*model, groups, policy);
  torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(1e-2));
  const auto x = torch::cos(torch::arange(24 * 48).view({24, 48}) * 0.3).to(world.device);
  const auto y = x.sum(1, true);
  const auto rows = 24 / world.size;
  std::vector<double> losses;
  for (int step = 0; step < 6; ++step) {
    optimizer.zero_grad();
    auto loss = torch::mse_loss(model(x.narrow(0, world.rank * rows, rows)), y.narrow(0, world.rank * rows, rows));
    loss.backward();
    optimizer.step();
    auto mean = loss.detach() / static_cast<double>(world.size);
    groups.world.all_reduce(mean).wait();
    losses.push_back(mean.item<double>());
  }
  return losses;
}

void check_close(const std::vector<double>& ours, const std::vector<double>& wanted) {
  REQUIRE(ours.size() == wanted.size());
  for (std::size_t i = 0; i < ours.size(); ++i) CHECK(ours[i] == doctest::Approx(wanted[i]).epsilon(1e-4));
}

TEST_CASE("NCCL is there and sums, with a group of one") {
  const c10::cuda::CUDAGuard guard(0);
  auto store = c10::make_intrusive<c10d::HashStore>();
  auto nccl = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, 0, 1, c10d::ProcessGroupNCCL::Options::create());
  std::vector<at::Tensor> tensors{torch::ones({1000}, gpu(0))};
  nccl->allreduce(tensors)->wait();
  CHECK(tensors[0].sum().item<float>() == 1000);
}

TEST_CASE("the engine on one GPU trains as on the CPU, whatever the method") {
  const c10::cuda::CUDAGuard guard(0);
  for (const auto method : {ParallelMethod::None, ParallelMethod::Ddp, ParallelMethod::Fsdp}) {
    check_close(train({.device = gpu(0)}, method), train({}, method));
  }
}

TEST_CASE("collectives of CUDA tensors give what one process computes, and CPU tensors still go over Gloo") {
  const auto ranks = static_cast<std::int64_t>(c10::cuda::device_count());
  on_ranks(
      ranks,
      [ranks](World world) {
        const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(world.rank));
        world.device = gpu(world.rank);
        auto groups = make_groups(world, {1, ranks});
        for (const auto dtype : {at::kFloat, at::kHalf, at::kBFloat16, at::kLong}) {
          for (const std::int64_t n : {0, 1, 1237, 1'000'000}) {
            const auto options = at::TensorOptions(world.device).dtype(dtype);
            auto shard = torch::full({n}, world.rank + 1, options), whole = torch::zeros({n * ranks}, options);
            if (ranks == 1) whole.fill_(1);
            groups.shard.all_gather(whole, shard, "unit").wait();
            for (std::int64_t peer = 0; peer < ranks; ++peer) {
              CHECK(whole.narrow(0, peer * n, n).equal(torch::full({n}, peer + 1, options)));
            }
            groups.shard.reduce_scatter(shard, torch::full({n * ranks}, world.rank + 1, options), "unit").wait();
            CHECK(shard.equal(torch::full({n}, ranks * (ranks + 1) / 2, options)));
            auto all = torch::full({n}, world.rank + 1, options);
            groups.shard.all_reduce(all, "unit").wait();
            CHECK(all.equal(torch::full({n}, ranks * (ranks + 1) / 2, options)));
          }
        }
        auto on_cpu = torch::ones({3});
        groups.world.all_reduce(on_cpu).wait();
        CHECK(on_cpu.equal(torch::full({3}, static_cast<float>(ranks))));
      },
      std::chrono::seconds(60));
}

TEST_CASE("all GPUs together train as one CPU does") {
  const auto ranks = static_cast<std::int64_t>(c10::cuda::device_count());
  if (ranks < 2 || 24 % ranks != 0) return;
  const auto wanted = train({}, ParallelMethod::None);
  for (const auto method : {ParallelMethod::Ddp, ParallelMethod::Fsdp}) {
    on_ranks(
        ranks,
        [&](World world) {
          const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(world.rank));
          world.device = gpu(world.rank);
          check_close(train(world, method), wanted);
        },
        std::chrono::seconds(60));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (c10::cuda::device_count() == 0) {
    std::cout << "no GPU was found; skipped\n";
    return 77;
  }
  return doctest::Context(argc, argv).run();
}
