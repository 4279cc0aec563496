// SPDX-License-Identifier: Apache-2.0
// Groups over NCCL on several GPUs: who is named when a rank does not come, and communicators that are split.
// Beside gpu_test.cpp, which has the main function; ranks are threads with a GPU each.
// With fewer GPUs than a case needs it says so. The same cases over an engine in memory: device_engine_test.cpp.
#include <sealift/train.hpp>

#include "tests/support/left_out.hpp"
#include "tests/support/ranks.hpp"

#include <doctest/doctest.h>

#include <c10/cuda/CUDAFunctions.h>

#include <latch>

namespace {

using namespace sealift::train;
using sealift::test::on_ranks;
using Clock = std::chrono::steady_clock;

bool has_gpus(std::int64_t count) {
  const auto there = static_cast<std::int64_t>(c10::cuda::device_count());
  if (there < count) sealift::test::left_out("needs ", count, " GPUs, has ", there);
  return there >= count;
}

/// Runs `body(groups, rank)` as every rank of `mesh`, each on a GPU of its own.
template <class Body>
void on_gpus(const Mesh& mesh, std::chrono::milliseconds timeout, Body body) {
  on_ranks(
      mesh.world_size(),
      [&](World world) {
        world.device = {at::kCUDA, static_cast<c10::DeviceIndex>(world.rank)};
        const auto groups = make_groups(world, mesh);
        CHECK(c10::cuda::current_device() == world.rank);
        body(groups, world.rank);
      },
      timeout);
}

TEST_CASE("communicators of axes are split off the world's, and sum over their ranks") {
  if (!has_gpus(4)) return;
  const Mesh mesh{2, 2};
  on_gpus(mesh, std::chrono::seconds(60), [&](const Groups& groups, std::int64_t rank) {
    CHECK(groups.connections->engines_made() == 3);
    CHECK(groups.connections->gloo_made() == 1);
    for (auto group : {groups.world, groups.shard, groups.replicate}) {
      double sum = 0;
      for (const auto member : group.members()) sum += static_cast<double>(member);
      auto values = torch::full({1000}, static_cast<float>(rank), torch::Device(torch::kCUDA));
      group.all_reduce(values, "unit").wait();
      CHECK(values.eq(sum).all().item<bool>());
      auto part = torch::empty({10}, values.options());
      group.reduce_scatter(part, torch::full({10 * group.size()}, 2.0, values.options()), "unit").wait();
      CHECK(part.eq(2.0 * static_cast<double>(group.size())).all().item<bool>());
    }
  });
}

TEST_CASE("a rank that does not come to a collective over NCCL is named, no thread is blocked, and the GPU goes on") {
  if (!has_gpus(2)) return;
  constexpr auto kTimeout = std::chrono::seconds(4);
  std::latch over(1);
  on_gpus({1, 2}, kTimeout, [&](const Groups& groups, std::int64_t rank) {
    auto group = groups.shard;
    auto values = torch::ones({1000}, torch::Device(torch::kCUDA));
    group.all_reduce(values, "first").wait();
    group.all_reduce(values, "first").wait();
    c10::cuda::device_synchronize();
    if (rank == 1) return over.wait();
    const auto start = Clock::now();
    group.all_reduce(values, "first").wait();
    CHECK(Clock::now() - start < std::chrono::seconds(1));  // the stream waits
    c10::cuda::device_synchronize();                        // until the communicator is aborted
    CHECK(Clock::now() - start < kTimeout + std::chrono::seconds(4));
    CHECK_THROWS_WITH(group.all_reduce(values, "next"),
                      doctest::Contains("rank 1 did not come to all_reduce of unit 'first' (1000 Float)"));
    over.count_down();
  });
}

}  // namespace
