// SPDX-License-Identifier: Apache-2.0
// The training core on GPUs: NCCL's collectives against whole numbers, the engine against one CPU, and its use of
// streams. All memory is NaN until it is written (PoisoningAllocator), and collectives and blocks are delayed, so that
// what is not waited for shows. One GPU is enough: ranks that share it are processes over NCCL, each with an
// NCCL_HOSTID of its own (processes_test.cpp). Without a GPU it says so and ends with 77, which ctest reports as
// skipped.
#include "tests/train/gpu/jobs.hpp"

#include "tests/support/poisoning_allocator.hpp"
#include "tests/support/temp_dir.hpp"

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "tests/support/process_ranks.hpp"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/Sleep.h>
#include <c10/cuda/CUDAFunctions.h>
#include <sealift/train/comm/nccl_backend.hpp>

#include <iostream>

namespace {

using namespace sealift::test;

at::Device gpu(std::int64_t rank = 0) {
  return {at::kCUDA, static_cast<c10::DeviceIndex>(rank)};
}

/// Keeps the current stream busy for some milliseconds.
void sleep_on_stream() {
  at::cuda::sleep(5'000'000);  // cycles
}

/// bf16 has 8 bits.
double tolerance_of(const GpuJob& job) {
  return job.is_fp32() ? 1e-4 : 2e-2;
}

/// NCCL over the given store.
c10::intrusive_ptr<c10d::Backend> nccl_alone() {
  return make_nccl({.store = c10::make_intrusive<c10d::HashStore>(),
                    .rank = 0,
                    .size = 1,
                    .name = "alone",
                    .ranks = {0},
                    .device = gpu(),
                    .timeout = std::chrono::seconds(60)});
}

std::int64_t bytes_in_use() {
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocated_bytes[kAll].current;
}

class StackImpl : public torch::nn::Module {
 public:
  static constexpr std::int64_t kLayers = 8;
  StackImpl() {
    for (std::int64_t i = 0; i < kLayers; ++i) {
      layers_.push_back(register_module("layer" + std::to_string(i), Shardable<torch::nn::Linear>(1024, 1024)));
    }
  }
  at::Tensor forward(at::Tensor x) {
    for (auto& layer : layers_) x = layer(x);
    return x;
  }

 private:
  std::vector<Shardable<torch::nn::Linear>> layers_;
};
TORCH_MODULE(Stack);

}  // namespace

TEST_CASE("memory that nobody has written is NaN, and so is memory that was freed") {
  const c10::cuda::CUDAGuard guard(0);
  auto tensor = torch::empty({1000}, gpu());
  CHECK(tensor.isnan().all().item<bool>());
  tensor.fill_(1);
  const auto* place = tensor.data_ptr();
  const auto stale = torch::from_blob(tensor.data_ptr(), {1000}, tensor.options());
  tensor.reset();
  CHECK(stale.cpu().isnan().all().item<bool>());  // on the CPU, since a result on the GPU could take the same memory
  CHECK(torch::empty({1000}, gpu()).data_ptr() == place);
}

TEST_CASE("a collective that is not waited for shows: its result is not there yet, and is after the wait") {
  on_ranks(2, [](const World& world) {
    const c10::cuda::CUDAGuard guard(0);
    StagingBackend backend(world.store, static_cast<int>(world.rank), 2, world.timeout, gpu(), sleep_on_stream);
    auto mine = torch::full({64}, float(world.rank + 1), gpu()), whole = torch::empty({128}, gpu());
    const auto work = backend._allgather_base(whole, mine);
    const auto early = whole.clone();
    work->wait();
    CHECK(early.isnan().all().item<bool>());
    CHECK(whole.equal(at::cat({torch::full({64}, 1.0f, gpu()), torch::full({64}, 2.0f, gpu())})));
  });
}

TEST_CASE("NCCL with one rank does every collective that the core asks for") {
  const c10::cuda::CUDAGuard guard(0);
  const auto nccl = nccl_alone();
  for (const auto dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const std::int64_t n : {1, 1237, 1'000'000}) {
      auto shard = torch::full({n}, 3, at::TensorOptions(gpu()).dtype(dtype)), whole = torch::empty_like(shard);
      nccl->_allgather_base(whole, shard)->synchronize();
      CHECK(whole.equal(shard));
      nccl->_reduce_scatter_base(whole, shard)->synchronize();
      CHECK(whole.equal(shard));
      std::vector<at::Tensor> tensors{shard.clone()};
      nccl->allreduce(tensors)->synchronize();
      nccl->broadcast(tensors)->synchronize();
      CHECK(tensors[0].equal(shard));
    }
  }
}

TEST_CASE("one rank on a GPU trains as one on a CPU, with flats and without") {
  const c10::cuda::CUDAGuard guard(0);
  for (const auto& job : gpu_jobs(1)) {
    CAPTURE(job.name);
    const auto on_gpu = run_job({.device = gpu()}, job, {}, sleep_on_stream);
    const auto on_cpu = run_job({}, job);
    if (!job.is_fp32()) CHECK(on_gpu.flats > 0);  // else this would test LibTorch alone
    check_near(on_gpu, on_cpu, tolerance_of(job));
    check_equal(run_job({.device = gpu()}, job), on_gpu);
  }
}

TEST_CASE("processes that share a GPU hold between steps what the formula says") {
  on_processes(4, [](const World& world) {
    const Policy mixed{.method = ParallelMethod::Fsdp, .precision = parse_precision("mixed")};
    const auto before = bytes_in_use();
    auto groups = make_groups(world, make_mesh(mixed, world.size));
    Shardable<Stack> layers;
    layers->to(world.device);
    auto parallel = parallelize(*layers, groups, mixed);
    FusedAdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(1e-4));
    for (int step = 0; step < 2; ++step) {
      optimizer.zero_grad();
      const auto x = layers(torch::ones({8, 1024}, world.device));
      x.to(torch::kFloat32).square().mean().backward();
      optimizer.step();
    }
    at::cuda::device_synchronize();
    at::cuda::clearCublasWorkspaces();  // tens of megabytes
    const auto held = bytes_in_use() - before;
    const auto parameters = StackImpl::kLayers * (1024 * 1024 + 1024);
    const auto formula = 16 * parameters / world.size;  // fp32 parameters, two moments and gradients
    std::cout << "memory: a rank of " << world.size << " holds " << held << " bytes between steps, formula " << formula
              << '\n';
    CHECK(held >= formula);
    CHECK(held <= formula * 11 / 10);
  });
}

TEST_CASE("collectives of all GPUs over NCCL give what one process computes, and CPU tensors still go over Gloo") {
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

TEST_CASE("all GPUs together train over NCCL as one CPU does") {
  const auto ranks = static_cast<std::int64_t>(c10::cuda::device_count());
  if (ranks < 2 || 24 % ranks != 0) return;
  for (const auto& job : gpu_jobs(ranks)) {
    CAPTURE(job.name);
    on_ranks(
        ranks,
        [&](World world) {
          const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(world.rank));
          world.device = gpu(world.rank);
          check_near(run_job(world, job, {}, sleep_on_stream), job_on_one_cpu(), tolerance_of(job));
        },
        std::chrono::seconds(60));
  }
}

int main(int argc, char** argv) {
  if (c10::cuda::device_count() == 0) {
    std::cout << "no GPU was found; skipped\n";
    return 77;
  }
  // To the bit the same in each run, so that any difference is the core's; before cuBLAS starts.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 1);
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  PoisoningAllocator::install();
  process_device = [](std::int64_t) { return gpu(); };
  return doctest::Context(argc, argv).run();
}
