// SPDX-License-Identifier: Apache-2.0
// Peak memory against the bounds of FSDP2's own tests, counted by the allocator, not by the system.
// Two ranks in this process, so counts are halved: a sum of peaks is no less than the peak of the sum.
// Blocks are large compared with other allocations. With P the shard, U the largest unit, R the root, all in bytes:
//   built P + U, forward P + 3U + R, backward 2P + 3U + R, after the step 4P; 16 MiB are for the rest.
#include "tests/support/counting_allocator.hpp"
#include "tests/train/fixture.hpp"

using namespace sealift::test;

namespace {

constexpr std::int64_t kSlack = std::int64_t{16} << 20;

class WideImpl : public torch::nn::Module {
 public:
  explicit WideImpl(std::int64_t width) : linear_(register_module("linear", torch::nn::Linear(width, width))) {}
  at::Tensor forward(const at::Tensor& x) { return torch::tanh(linear_(x)); }

 private:
  torch::nn::Linear linear_;
};
TORCH_MODULE(Wide);

class DeepImpl : public torch::nn::Module {
 public:
  DeepImpl(std::int64_t layers, std::int64_t width) : head_(register_module("head", torch::nn::Linear(width, 8))) {
    for (std::int64_t i = 0; i < layers; ++i) {
      blocks_.push_back(register_module("block" + std::to_string(i), Shardable<Wide>(width)));
    }
  }
  at::Tensor forward(at::Tensor x) {
    for (auto& block : blocks_) x = block(x);
    return head_(x);
  }

 private:
  std::vector<Shardable<Wide>> blocks_;
  torch::nn::Linear head_;
};
TORCH_MODULE(Deep);

/// Bytes per rank, above those at the start.
struct Peaks {
  std::int64_t built = 0, forward = 0, backward = 0, step = 0, after = 0;
};

Peaks measure(const Policy& policy, std::int64_t layers, std::int64_t width, std::int64_t micro_batches = 1) {
  CountingAllocator::install();
  auto& live = CountingAllocator::all.live;
  auto& peak_so_far = CountingAllocator::all.peak;
  Peaks peaks;
  const auto base = live.load();
  on_ranks(2, [&](const World& world) {
    auto groups = make_groups(world, make_mesh(policy, world.size));
    Shardable<Deep> model(layers, width);
    auto parallel = parallelize(*model, groups, policy);
    torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(1e-3));
    const auto note = [&](std::int64_t& peak) {
      groups.world.barrier();
      if (world.rank == 0) {
        peak = (peak_so_far - base) / 2;
        peak_so_far = live.load();
      }
      groups.world.barrier();
    };
    groups.world.barrier();
    if (world.rank == 0) peak_so_far = live.load();
    note(peaks.built);
    for (int step = 0; step < 3; ++step) {
      for (std::int64_t micro = 0; micro < micro_batches; ++micro) {
        parallel.set_micro_batch(micro, micro_batches);
        const auto loss = model(torch::ones({4, width})).sum();
        note(peaks.forward);
        loss.backward();
        note(peaks.backward);
      }
      optimizer.step();
      note(peaks.step);
      optimizer.zero_grad();
      note(peaks.after);
      note(peaks.after);
    }
  });
  return peaks;
}

}  // namespace

TEST_CASE("fsdp holds a shard and a few units, wherever the model is deep") {
  const std::int64_t layers = 12, width = 1536;
  const std::int64_t U = (width * width + width) * 4, R = (width * 8 + 8) * 4, P = (layers * U + R) / 2;
  const auto peaks = measure({.method = ParallelMethod::Fsdp}, layers, width);
  CHECK(peaks.built <= P + U + kSlack);
  CHECK(peaks.forward <= 3 * P + 3 * U + R + kSlack);   // moments are there from the first step on
  CHECK(peaks.backward <= 4 * P + 4 * U + R + kSlack);  // FSDP2's 3 U, one more for what the pool keeps
  CHECK(peaks.step <= 4 * P + 2 * U + kSlack);
  CHECK(peaks.after <= 4 * P + kSlack);  // of which P is the buffer that the next gradients go to

  auto keep = Policy{.method = ParallelMethod::Fsdp, .reshard_after_forward = false};
  const auto kept = measure(keep, layers, width);
  CHECK(kept.forward <= 3 * P + 2 * P + U + kSlack);
  CHECK(kept.backward <= 4 * P + 2 * P + 3 * U + kSlack);
  CHECK(kept.forward > peaks.forward + P / 2);  // so that the count means something
}

TEST_CASE("what fsdp needs beside its shards does not grow with depth") {
  const std::int64_t width = 1024, U = (width * width + width) * 4;
  const auto beside_shards = [&](std::int64_t layers) {
    const auto P = layers * U / 2;
    return measure({.method = ParallelMethod::Fsdp}, layers, width).backward - 4 * P;
  };
  const auto shallow = beside_shards(4), deep = beside_shards(14);
  // Two ranks share a pool here, which keeps what both held at one time: a unit more or less. Depth would cost ten.
  CHECK(std::abs(deep - shallow) <= 2 * U);
}

TEST_CASE("ddp holds 16 bytes per parameter: value, gradient in its bucket, two moments") {
  const std::int64_t layers = 6, width = 1536;
  const std::int64_t all = (layers * (width * width + width) + width * 8 + 8) * 4;
  const auto peaks = measure({.method = ParallelMethod::Ddp}, layers, width);
  CHECK(peaks.step <= 4 * all + all / layers + kSlack);
}

TEST_CASE("with accumulation fsdp holds no more than ddp, whatever it keeps, and less when it keeps nothing") {
  const std::int64_t layers = 8, width = 1536, M = 3;
  const auto most = [](const Peaks& peaks) { return std::max({peaks.forward, peaks.backward, peaks.step}); };
  const auto ddp = most(measure({.method = ParallelMethod::Ddp}, layers, width, M));
  const auto kept = most(measure({.method = ParallelMethod::Fsdp}, layers, width, M));
  const auto freed =
      most(measure({.method = ParallelMethod::Fsdp, .keep_gathered = KeepGathered::Never}, layers, width, M));
  MESSAGE("ddp " << (ddp >> 20) << " MiB, fsdp " << (kept >> 20) << " MiB, freed " << (freed >> 20) << " MiB");
  CHECK(kept <= ddp + kSlack);
  CHECK(freed < kept);
}
