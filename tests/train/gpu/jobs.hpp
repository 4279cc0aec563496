// SPDX-License-Identifier: Apache-2.0
// Trainings for any device and any engine of collectives, each with another part of the core in it.
// For gpu_test, which holds a GPU's results against a CPU's and delayed against undelayed ones, and for staging_test,
// which runs the same jobs on a CPU so that the tests are known to run. Fixed numbers and shapes that do not divide, so
// that every rank and device begins alike and flats are padded.
#pragma once

#include <sealift/train.hpp>

#include "tests/support/ranks.hpp"
#include "tests/support/staging_backend.hpp"

#include <doctest/doctest.h>

namespace sealift::test {

using namespace sealift::train;

class GpuBlockImpl : public torch::nn::Module {
 public:
  GpuBlockImpl()
      : norm_(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({36})))),
        up_(register_module("up", torch::nn::Linear(36, 65))),
        down_(register_module("down", torch::nn::Linear(65, 36))) {}

  at::Tensor forward(const at::Tensor& x) {
    if (probe) probe();
    return x + down_(torch::tanh(up_(norm_(x))));
  }

  std::function<void()> probe;  ///< called where parameters must be whole; may queue a sleep

 private:
  torch::nn::LayerNorm norm_;
  torch::nn::Linear up_, down_;
};
TORCH_MODULE(GpuBlock);

class GpuNetImpl : public torch::nn::Module {
 public:
  static constexpr std::int64_t kVocabulary = 31;

  explicit GpuNetImpl(bool recompute, const std::function<void()>& probe)
      : tokens_(register_module("tokens", torch::nn::Embedding(kVocabulary, 36))) {
    for (int i = 0; i < 4; ++i) {
      blocks_.push_back(register_module("block" + std::to_string(i), Shardable<Recomputed<GpuBlock>>()));
      blocks_.back()->recomputes = recompute;
      blocks_.back()->probe = probe;
    }
    at::NoGradGuard no_grad;
    double phase = 0;
    for (auto& parameter : parameters()) {
      phase += 0.37;
      parameter.copy_(torch::sin(torch::arange(parameter.numel()).view(parameter.sizes()) * 0.7 + phase) * 0.3);
    }
  }

  /// Token numbers [rows] -> logits [rows, vocabulary]
  at::Tensor forward(const at::Tensor& ids) {
    auto x = tokens_(ids);
    for (auto& block : blocks_) x = block(x);
    return torch::linear(x, tokens_->weight);
  }

 private:
  torch::nn::Embedding tokens_;
  std::vector<Shardable<Recomputed<GpuBlock>>> blocks_;
};
TORCH_MODULE(GpuNet);

struct GpuJob {
  std::string name;
  Policy policy;
  std::int64_t micro_batches = 1;
  bool recompute = false;

  bool is_fp32() const { return policy.precision == MixedPrecision{}; }
};

/// One job for each part of the core that queues work on streams or frees memory.
inline std::vector<GpuJob> gpu_jobs(std::int64_t ranks) {
  const Policy ddp{.method = ParallelMethod::Ddp}, fsdp{.method = ParallelMethod::Fsdp};
  const auto with = [](Policy policy, const auto& change) {
    change(policy);
    return policy;
  };
  const auto mixed = parse_precision("mixed");
  std::vector<GpuJob> jobs = {
      {"ddp", ddp},
      {"ddp, small buckets, two micro-batches",
       with(ddp, [](Policy& p) { p.first_bucket_bytes = p.bucket_bytes = 2000; }), 2},
      {"fsdp", fsdp},
      {"fsdp without prefetch", with(fsdp, [](Policy& p) { p.forward_prefetch = p.backward_prefetch = 0; })},
      {"fsdp with much prefetch", with(fsdp, [](Policy& p) { p.forward_prefetch = p.backward_prefetch = 3; })},
      {"fsdp, kept after forward", with(fsdp, [](Policy& p) { p.reshard_after_forward = false; })},
      {"fsdp, one unit", with(fsdp, [](Policy& p) { p.wrap = root_only(); })},
      {"fsdp, two micro-batches", fsdp, 2},
      {"fsdp, two micro-batches, each reduced", with(fsdp, [](Policy& p) { p.reduce_every_micro_batch = true; }), 2},
      {"fsdp, recompute", fsdp, 1, true},
      {"fsdp, unused parameters", with(fsdp, [](Policy& p) { p.find_unused_parameters = true; })},
      {"fsdp, mixed", with(fsdp, [&](Policy& p) { p.precision = mixed; })},
      {"fsdp, mixed, recompute, two micro-batches", with(fsdp, [&](Policy& p) { p.precision = mixed; }), 2, true},
      {"fsdp, parameters offloaded", with(fsdp, [](Policy& p) { p.offload.parameters = true; })},
      {"fsdp, moments and gradients offloaded",
       with(fsdp, [](Policy& p) { p.offload = {.gradients = true, .optimizer_state = true}; })},
  };
  if (ranks % 2 == 0 && ranks > 2) {
    jobs.push_back({"hsdp", {.method = ParallelMethod::Hsdp, .shard_size = 2}, 2});
    jobs.push_back({"fsdp, resharded to a group", with(fsdp, [](Policy& p) { p.reshard_group = 2; })});
  }
  return jobs;
}

struct GpuOutcome {
  std::vector<double> losses;          ///< of the global batch
  std::vector<at::Tensor> parameters;  ///< whole, on the CPU
  std::size_t flats = 0;               ///< that the core made
};

/// A few steps as one rank. `nccl`: what CUDA tensors go over; empty: as the program is.
inline GpuOutcome run_job(const World& world, const GpuJob& job, const EngineFactory& engine = {},
                          const std::function<void()>& probe = {}) {
  constexpr std::int64_t kRows = 48, kSteps = 5;
  auto groups = make_groups(world, make_mesh(job.policy, world.size), {.device_engine = engine});
  Shardable<GpuNet> net(job.recompute, probe);
  net->to(world.device);
  auto parallel = parallelize(*net, groups, job.policy);
  const auto moments = job.policy.offload.optimizer_state ? Moments::OnHost : Moments::WithParameter;
  FusedAdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(1e-2), moments);

  GpuOutcome outcome;
  for (const auto& unit : parallel.units()) outcome.flats += unit->flats().size();
  const auto rows = kRows / world.size / job.micro_batches;
  auto losses = torch::zeros({kSteps}, at::TensorOptions(world.device).dtype(torch::kFloat64));
  for (std::int64_t step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    const auto ids = ((torch::arange(kRows) * 5 + step) % GpuNetImpl::kVocabulary).to(world.device);
    const auto targets = (ids * 3 + 1) % GpuNetImpl::kVocabulary;
    for (std::int64_t micro = 0; micro < job.micro_batches; ++micro) {
      parallel.set_micro_batch(micro, job.micro_batches);
      const auto first = (world.rank * job.micro_batches + micro) * rows;
      const auto logits = net(ids.narrow(0, first, rows)).to(torch::kFloat32);
      auto loss = torch::nn::functional::cross_entropy(logits, targets.narrow(0, first, rows));
      losses[step] += loss.detach().to(torch::kFloat64) / double(job.micro_batches * world.size);
      (loss / double(job.micro_batches)).backward();
    }
    clip_grad_norm_(parallel, 1.0);
    optimizer.step();
  }
  groups.world.all_reduce(losses).wait();
  const auto on_host = losses.cpu();
  for (std::int64_t step = 0; step < kSteps; ++step) outcome.losses.push_back(on_host[step].item<double>());
  const auto whole = parallel.gather_parameters();
  for (const auto& parameter : net->parameters())
    outcome.parameters.push_back(parameter.detach().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true));
  return outcome;
}

/// `run_job` on ranks of which each has `device_of(rank)`, over staging backends that call `delay`; all ranks must end
/// alike.
template <class DeviceOf>
GpuOutcome run_staged_on(std::int64_t ranks, const DeviceOf& device_of, const GpuJob& job,
                         const std::function<void()>& delay = {}) {
  std::vector<GpuOutcome> outcomes(static_cast<std::size_t>(ranks));
  on_ranks(
      ranks,
      [&](World world) {
        world.device = device_of(world.rank);
        outcomes[static_cast<std::size_t>(world.rank)] = run_job(world, job, staging_factory(delay), delay);
      },
      std::chrono::seconds(60));
  for (const auto& outcome : outcomes) {
    for (std::size_t i = 0; i < outcome.parameters.size(); ++i) {
      CHECK(outcome.parameters[i].equal(outcomes[0].parameters[i]));
    }
  }
  return outcomes[0];
}

/// The same on ranks that share `device`.
inline GpuOutcome run_staged(std::int64_t ranks, at::Device device, const GpuJob& job,
                             const std::function<void()>& delay = {}) {
  return run_staged_on(
      ranks, [device](std::int64_t) { return device; }, job, delay);
}

/// One process on the CPU: what every job computes.
inline const GpuOutcome& job_on_one_cpu() {
  static const GpuOutcome outcome = run_job({}, {"none", {.method = ParallelMethod::None}});
  return outcome;
}

inline void check_near(const GpuOutcome& got, const GpuOutcome& wanted, double tolerance) {
  REQUIRE(got.losses.size() == wanted.losses.size());
  for (std::size_t i = 0; i < got.losses.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(got.losses[i] - wanted.losses[i]) <= tolerance * std::abs(wanted.losses[i]));  // false for NaN
  }
}

/// To the bit: what a stream that was not waited for, or memory that was freed too early, would change.
inline void check_equal(const GpuOutcome& got, const GpuOutcome& wanted) {
  CHECK(got.losses == wanted.losses);
  REQUIRE(got.parameters.size() == wanted.parameters.size());
  for (std::size_t i = 0; i < got.parameters.size(); ++i) {
    CAPTURE(i);
    CHECK(got.parameters[i].equal(wanted.parameters[i]));
  }
}

}  // namespace sealift::test
