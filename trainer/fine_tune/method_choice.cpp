// SPDX-License-Identifier: Apache-2.0
// See method_choice.hpp.
#include "trainer/fine_tune/method_choice.hpp"

#include "trainer/fine_tune/job_model.hpp"
#include "trainer/fine_tune/planned_job.hpp"
#include "trainer/plan/auto_method.hpp"
#include "trainer/ranks/job_policy.hpp"

namespace sealift::trainer {
namespace {

/// Bytes that are free for the rank with the least, the same on all ranks; ranks share the memory of a host without
/// GPUs. 0: unknown. Collective.
std::int64_t least_free_memory(const train::World& world, at::Device device, std::int64_t ranks_of_host) {
  const auto mine = train::free_memory(device) / (device.is_cpu() ? ranks_of_host : 1);
  if (world.size == 1) return mine;
  world.store->set("free_memory/" + std::to_string(world.rank), std::to_string(mine));
  auto least = mine;
  for (std::int64_t rank = 0; rank < world.size; ++rank) {
    const auto theirs = world.store->get_to_str("free_memory/" + std::to_string(rank));
    least = std::min(least, static_cast<std::int64_t>(std::atoll(theirs.c_str())));
  }
  return least;
}

/// Chooses by the memory that is free on `device`; `ranks_of_host`: ranks of each host. Collective.
plan::Chosen choose_method(const FineTuneOptions& options, const DecoderConfig& config, const train::World& ranks,
                           std::int64_t ranks_of_host, at::Device device) {
  auto machine = planned_machine(ranks.size, ranks_of_host, device);
  machine.memory = least_free_memory(ranks, device, ranks_of_host);
  return plan::choose_method(planned_candidate(options, config), planned_way(options, config, ranks.size), machine,
                             kernels_of(device));
}

}  // namespace

bool leaves_method_open(const FineTuneOptions& options) {
  return options.parallel_method == "auto";
}

FineTuneOptions with_method(FineTuneOptions options, const DecoderConfig& config, const Rank& rank,
                            const train::World& ranks, const train::Launch& launch) {
  const auto choice = choose_method(options, config, ranks, launch.local_world_size, rank.device.device);
  options.parallel_method = choice.method;
  options.shard_size = choice.shard_size;
  if (rank.is_first()) {
    for (const auto& line : choice.lines) std::cerr << line << '\n';
  }
  return options;
}

train::Policy policy_of(const FineTuneOptions& options, std::int64_t world_size) {
  auto policy = make_policy(options, compute_precision(compute_dtype(options.precision)));
  // One process without a method has units too where dtypes or codecs need them.
  const bool needs_units = options.precision != "fp32" || options.tuner_type == "qlora" || !options.offload.empty();
  if (needs_units && world_size == 1 && policy.method == train::ParallelMethod::None) {
    policy.method = train::ParallelMethod::Ddp;
  }
  return policy;
}

}  // namespace sealift::trainer
