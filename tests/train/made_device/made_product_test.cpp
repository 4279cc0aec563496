// SPDX-License-Identifier: Apache-2.0
// Gradients of weights that a product adds to the fp32 flat by itself, on a device that has such an operation
// (addmm.dtype_out: CUDA's; LibTorch's CPU has none).
#include "tests/train/made_device/made_device.hpp"
#include "trainer/models/projection.hpp"

#include <doctest/doctest.h>

using namespace sealift;
using namespace sealift::trainer;
namespace made = sealift::test::made;

namespace {

constexpr std::int64_t kMicroBatches = 3;

struct LineImpl : torch::nn::Module {
  Projection projection{register_module("projection", Projection(16, 8, false))};

  at::Tensor forward(const at::Tensor& x) { return projection(x); }
};
TORCH_MODULE(Line);

/// A unit below the root, since the root's gradients wait on their parameters.
struct RootOfLineImpl : torch::nn::Module {
  train::Shardable<Line> line{register_module("line", train::Shardable<Line>())};

  at::Tensor forward(const at::Tensor& x) { return line(x); }
};
TORCH_MODULE(RootOfLine);

at::Tensor drawn(at::IntArrayRef sizes, std::uint64_t seed) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed)).to(at::kBFloat16);
}

struct Accumulated {
  at::Tensor gradient;  ///< of all micro-batches, on the CPU
  made::Counts counts;
};

/// bf16 products over an fp32 shard, on `device`; the output's gradient in micro-batch i is drawn({32, 8}, 50 + i).
Accumulated accumulate(at::Device device) {
  made::install();
  train::Policy policy{.method = train::ParallelMethod::Fsdp};
  policy.precision.param_dtype = at::kBFloat16;
  train::World world{.store = c10::make_intrusive<c10d::HashStore>(), .device = device};
  train::Shardable<RootOfLine> model;
  model->to(device);
  const auto groups = train::make_groups(world, train::make_mesh(policy, 1));
  auto parallel = train::parallelize(*model, groups, policy);
  made::reset_counts();
  for (std::int64_t micro = 0; micro < kMicroBatches; ++micro) {
    parallel.set_micro_batch(micro, kMicroBatches);
    const auto x = drawn({32, 16}, 10 + static_cast<std::uint64_t>(micro)).to(device);
    const auto slope = drawn({32, 8}, 50 + static_cast<std::uint64_t>(micro)).to(device);
    (model(x) * slope).sum().backward();
  }
  return {parallel.shards().front().grad().cpu().view({8, 16}), made::counts()};
}

at::Tensor expected() {
  auto sum = at::zeros({8, 16});
  for (std::uint64_t micro = 0; micro < kMicroBatches; ++micro) {
    sum.addmm_(drawn({32, 8}, 50 + micro).t().to(at::kFloat), drawn({32, 16}, 10 + micro).to(at::kFloat));
  }
  return sum;
}

double distance(const at::Tensor& found, const at::Tensor& wanted) {
  return ((found - wanted).norm() / wanted.norm()).item<double>();
}

}  // namespace

TEST_CASE("bf16 products of micro-batches add themselves to the fp32 flat, without being rounded to bf16 between") {
  auto there = accumulate(made::device(0));
  CHECK(distance(there.gradient, expected()) < 1e-6);
  CHECK(there.counts.by_operation["addmm into fp32"] == kMicroBatches);
  // On the CPU each product is a bf16 tensor before it is added.
  CHECK(distance(accumulate(at::kCPU).gradient, expected()) > 1e-4);
  CHECK(distance(accumulate(at::kCPU).gradient, expected()) < 1e-2);
}
