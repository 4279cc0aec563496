// SPDX-License-Identifier: Apache-2.0
#include "trainer/plan/report.hpp"

namespace sealift::trainer::plan {

nlohmann::ordered_json to_json(const Row& row) {
  const auto& [way, memory, volume, time] = std::tie(row.way, row.memory, row.volume, row.time);
  nlohmann::ordered_json json{
      {"way", words_of(row)},
      {"tuner_type", row.tuner},
      {"precision", way.narrow() ? "bf16" : "fp32"},
      {"parallel_method", name_of(way.method)},
      {"ranks", way.ranks},
      {"shard_size", way.shard},
      {"per_device_train_batch_size", way.batch.rows},
      {"gradient_accumulation_steps", way.micro_batches},
      {"gradient_checkpointing", way.recompute},
      {"reshard_after_forward", way.reshard_after_forward},
      {"keep_gathered", way.keep_gathered},
      {"reduce_every_micro_batch", way.reduce_every_micro_batch},
      {"offload", nlohmann::json::array()},
      {"fits", row.fits},
      {"bytes",
       {{"parameters", memory.parameters},
        {"gradients", memory.gradients},
        {"moments", memory.moments},
        {"gathered", memory.gathered},
        {"activations", memory.activations},
        {"logits", memory.logits},
        {"buffers", memory.buffers},
        {"slack", memory.slack},
        {"sum", memory.sum()},
        {"host", memory.host}}},
      {"sent",
       {{"gather", volume.gather}, {"reduce", volume.reduce}, {"copies", volume.copies}, {"sum", volume.sum()}}},
      {"seconds",
       {{"step", time.seconds},
        {"compute", time.compute},
        {"exposed_gather", time.exposed_gather},
        {"exposed_reduce", time.exposed_reduce},
        {"offload", time.offload},
        {"optimizer", time.optimizer}}},
      {"tokens_per_second", row.tokens_per_second},
      {"gpu_hours", row.gpu_hours}};
  if (way.offload_parameters) json["offload"].push_back("parameters");
  if (way.offload_moments) json["offload"].push_back("optimizer_state");
  if (!row.fits) json["reason"] = row.reason;
  return json;
}

nlohmann::ordered_json to_json(const Machine& machine) {
  return {{"hosts", machine.hosts},
          {"cards", machine.cards},
          {"memory", machine.memory},
          {"card_link", machine.link},
          {"link", machine.network},
          {"bus", machine.bus},
          {"flops", machine.flops},
          {"host_memory", machine.host_memory},
          {"memory_rate", machine.memory_rate},
          {"latency", machine.latency},
          {"disk", machine.disk}};
}

}  // namespace sealift::trainer::plan
