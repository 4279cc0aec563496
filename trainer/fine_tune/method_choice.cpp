// SPDX-License-Identifier: Apache-2.0
// See method_choice.hpp.
#include "trainer/fine_tune/method_choice.hpp"

#include "trainer/fine_tune/job_model.hpp"
#include "trainer/plan/auto_method.hpp"
#include "trainer/plan/meta_shape.hpp"
#include "trainer/ranks/job_policy.hpp"
#include "trainer/tuning/qlora.hpp"

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

/// Tokens of a row, as far as they are known before the data are: what a row may have at most.
std::int64_t planned_length(const FineTuneOptions& options, const DecoderConfig& config) {
  constexpr std::int64_t kUnknown = 2048;
  if (options.max_length > 0) return options.max_length;
  return options.packing ? config.max_positions : std::min(config.max_positions, kUnknown);
}

/// The job as the planner sees it, but for its method.
plan::Way planned_way(const FineTuneOptions& options, const DecoderConfig& config, std::int64_t world_size) {
  const auto& offload = options.offload;
  const auto offloads = [&](const char* what) {
    return std::find(offload.begin(), offload.end(), what) != offload.end();
  };
  const auto sequences = options.task == Task::Dpo || options.task == Task::Reward ? 2 : 1;
  return {.micro_batches = options.micro_batches(world_size),
          .batch = {.rows = options.per_device_train_batch_size * sequences, .length = planned_length(options, config)},
          .recompute = options.gradient_checkpointing,
          .reshard_after_forward = options.reshard_after_forward.value_or(true),
          .reduce_every_micro_batch = options.reduce_every_micro_batch,
          .offload_parameters = offloads("parameters"),
          .offload_gradients = offloads("gradients"),
          .offload_moments = offloads("optimizer_state")};
}

/// The model that is trained, in numbers; in units of blocks, however the job wraps.
plan::Candidate planned_candidate(const FineTuneOptions& options, const DecoderConfig& config) {
  auto model = build_on_meta(options, config);
  adapt(model, options);
  train::Policy policy{.method = train::ParallelMethod::Fsdp};
  if (options.tuner_type == "qlora") policy.store = store_projections(*model);
  const auto lora = options.has_adapters() ? std::optional(lora_of(options)) : std::nullopt;
  return {options.tuner_type, options.precision == "fp32" ? 4 : 2,
          plan::model_shape(*model, config, policy, lora ? &*lora : nullptr)};
}

/// Chooses by the memory that is free on `device`; `ranks_of_host`: ranks of each host. Collective.
plan::Chosen choose_method(const FineTuneOptions& options, const DecoderConfig& config, const train::World& ranks,
                           std::int64_t ranks_of_host, at::Device device) {
  plan::Machine machine;
  const bool divides = ranks_of_host > 0 && ranks.size % ranks_of_host == 0;
  machine.cards = divides ? ranks_of_host : ranks.size;
  machine.hosts = ranks.size / machine.cards;
  machine.memory = least_free_memory(ranks, device, ranks_of_host);
  if (device.is_cpu()) {  // rates of no machine in particular: what computes slowly hides what it sends
    machine.flops = 50e9;
    machine.link = machine.network = 2e9;
    machine.memory_rate = 10e9;
  }
  return plan::choose_method(planned_candidate(options, config), planned_way(options, config, ranks.size), machine,
                             device.is_cpu() ? plan::Kernels::Host : plan::Kernels::Cuda);
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
