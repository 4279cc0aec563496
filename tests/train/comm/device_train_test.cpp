// SPDX-License-Identifier: Apache-2.0
// Training over an engine that runs on a device, as NCCL does: every method gives what one process gives.
// The engine is fake_nccl.hpp's, on CPU tensors, so that the path that CUDA tensors take is run without a GPU.
// Against the fixture's model on one process; the factor of a reduction and the order of engines show in the values.
#include "tests/train/comm/fake_nccl.hpp"
#include "tests/train/fixture.hpp"

using namespace sealift::test;

namespace {

constexpr std::int64_t kSteps = 4;

/// The parameters after kSteps as one rank of `world`, whose collectives go over `fabric`.
std::vector<at::Tensor> train_over(const std::shared_ptr<FakeFabric>& fabric, const World& world,
                                   const Policy& policy) {
  const auto groups = make_groups(world, make_mesh(policy, world.size), {.device_engine = fabric->factory()});
  Shardable<Net> net;
  auto parallel = parallelize(*net, groups, policy);
  torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(kLearningRate));
  const auto rows = kBatch / world.size;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    const auto [ids, targets] = batch_of(step);
    const auto mine = net(ids.narrow(0, world.rank * rows, rows));
    torch::nn::functional::cross_entropy(mine, targets.narrow(0, world.rank * rows, rows)).backward();
    optimizer.step();
  }
  const auto whole = parallel.gather_parameters();
  std::vector<at::Tensor> parameters;
  for (const auto& parameter : net->parameters()) parameters.push_back(parameter.detach().clone());
  CHECK(groups.connections->gloo_made() == 1);
  return parameters;
}

}  // namespace

TEST_CASE("ddp, fsdp and hsdp over a device's engine train as one process does") {
  const auto wanted = train({}, {.method = ParallelMethod::None}, {.steps = kSteps});
  for (const auto& policy : {ddp(), fsdp(), hsdp(2)}) {
    CAPTURE(to_string(policy.method));
    const auto fabric = std::make_shared<FakeFabric>();
    on_ranks(4, [&](const World& world) {
      const auto got = train_over(fabric, world, policy);
      REQUIRE(got.size() == wanted.parameters.size());
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i].allclose(wanted.parameters[i], 1e-3, 1e-5));
    });
    CHECK(!fabric->aborted());
  }
}

TEST_CASE("a rank that leaves training over a device's engine is named by the others") {
  const auto fabric = std::make_shared<FakeFabric>();
  std::vector<std::string> said(3);
  on_ranks(
      3,
      [&](const World& world) {
        const auto groups = make_groups(world, {1, 3}, {.device_engine = fabric->factory()});
        try {
          Shardable<Net> net;
          auto parallel = parallelize(*net, groups, fsdp());
          for (std::int64_t step = 0;; ++step) {
            if (world.rank == 1 && step == 2) throw std::runtime_error("disk full");
            loss_of(net, step).backward();
          }
        } catch (const std::exception& error) {
          said[static_cast<std::size_t>(world.rank)] = error.what();
          groups.report_failure(error.what());
        }
      },
      std::chrono::seconds(8));
  for (const auto rank : {0U, 2U}) CHECK(said[rank].find("rank 1 failed in step") != std::string::npos);
  for (const auto& text : said) CHECK(text.find("disk full") != std::string::npos);
  CHECK(fabric->aborted());
}
