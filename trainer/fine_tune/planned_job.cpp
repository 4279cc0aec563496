// SPDX-License-Identifier: Apache-2.0
// See planned_job.hpp.
#include "trainer/fine_tune/planned_job.hpp"

#include "trainer/failure.hpp"
#include "trainer/fine_tune/job_model.hpp"
#include "trainer/fine_tune/training_data.hpp"
#include "trainer/plan/meta_shape.hpp"
#include "trainer/tuning/qlora.hpp"

namespace sealift::trainer {
namespace {

/// Tokens of a row, as far as they are known before the data are: what a row may have at most.
std::int64_t planned_length(const FineTuneOptions& options, const DecoderConfig& config) {
  return options.max_length > 0 ? options.max_length : std::min(config.max_positions, kUsualRow);
}

plan::Method method_of(train::ParallelMethod method) {
  switch (method) {
    case train::ParallelMethod::Ddp:
      return plan::Method::Ddp;
    case train::ParallelMethod::Fsdp:
      return plan::Method::Fsdp;
    case train::ParallelMethod::Hsdp:
      return plan::Method::Hsdp;
    default:
      return plan::Method::None;
  }
}

/// What the plan does not count; empty: the whole job.
std::string not_counted(const FineTuneOptions& options) {
  if (options.expert_model_parallel_size > 1) return "the plan does not count experts that are spread over ranks";
  if (options.use_dora) return "the plan does not count DoRA";
  if (options.wrapping_strategy != "by_block") return "the plan counts units of blocks only";
  if (options.find_unused_parameters) return "the plan does not count parameters that may be unused";
  return {};
}

}  // namespace

plan::Kernels kernels_of(at::Device device) {
  return device.is_cpu() ? plan::Kernels::Host : plan::Kernels::Cuda;
}

plan::Way planned_way(const FineTuneOptions& options, const DecoderConfig& config, std::int64_t world_size) {
  const auto& offload = options.offload;
  const auto offloads = [&](const char* what) {
    return std::find(offload.begin(), offload.end(), what) != offload.end();
  };
  const bool pairs = options.task == Task::Dpo || options.task == Task::Reward;  // whose answers share a row
  return {.micro_batches = options.micro_batches(world_size),
          .batch = {.rows = options.per_device_train_batch_size,
                    .length = planned_length(options, config) * (pairs && !options.packing ? 2 : 1),
                    .packed = options.packing || pairs},
          .recompute = options.gradient_checkpointing,
          .reshard_after_forward = options.reshard_after_forward.value_or(true),
          .reduce_every_micro_batch = options.reduce_every_micro_batch,
          .offload_parameters = offloads("parameters"),
          .offload_gradients = offloads("gradients"),
          .offload_moments = offloads("optimizer_state")};
}

plan::Candidate planned_candidate(const FineTuneOptions& options, const DecoderConfig& config) {
  auto model = build_on_meta(options, config);
  adapt(model, options);
  train::Policy policy{.method = train::ParallelMethod::Fsdp};
  if (options.tuner_type == "qlora") policy.store = store_projections(*model);
  const auto lora = options.has_adapters() ? std::optional(lora_of(options)) : std::nullopt;
  return {options.tuner_type, options.precision == "fp32" ? 4 : 2,
          plan::model_shape(*model, config, policy, lora ? &*lora : nullptr)};
}

plan::Machine planned_machine(std::int64_t world_size, std::int64_t ranks_of_host, at::Device device) {
  plan::Machine machine;
  const bool divides = ranks_of_host > 0 && world_size % ranks_of_host == 0;
  machine.cards = divides ? ranks_of_host : world_size;
  machine.hosts = world_size / machine.cards;
  if (device.is_cpu()) {
    machine.flops = 50e9;
    machine.link = machine.network = 2e9;
    machine.memory_rate = 10e9;
  }
  return machine;
}

nlohmann::ordered_json planned_cost(const FineTuneOptions& options, const DecoderConfig& config, const Place& place,
                                    std::int64_t ranks_of_host, const std::function<std::int64_t()>& length) {
  if (const auto reason = not_counted(options); !reason.empty()) return {{"not_known", reason}};
  try {
    const auto device = place.device.device;
    auto way = planned_way(options, config, place.world_size);
    way.method = method_of(place.policy.method);
    way.ranks = place.world_size;
    way.shard = place.mesh.shard;
    way.reshard_after_forward = place.policy.reshard_after_forward;
    plan::Question question{.machine = planned_machine(place.world_size, ranks_of_host, device),
                            .kernels = kernels_of(device),
                            .length = length()};
    question.machine.memory = train::free_memory(device) / (device.is_cpu() ? ranks_of_host : 1);
    const auto row = plan::make_row(planned_candidate(options, config), way, question);
    nlohmann::ordered_json json{{"memory_bytes", row.memory.sum()}, {"sent_bytes", row.volume.sum()}};
    if (!device.is_cpu()) json["step_seconds"] = row.time.seconds;
    return json;
  } catch (const std::exception& error) {  // a plan that fails ends no training
    return {{"not_known", text_of(error)}};
  }
}

}  // namespace sealift::trainer
