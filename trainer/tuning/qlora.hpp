// SPDX-License-Identifier: Apache-2.0
// QLoRA: adapters over projections that are kept as 4-bit NF4, and what such a model takes on each rank.
// Sets `Policy::store` before parallelize(); the core's stored_codec.hpp does the rest.
// The sizes are those of the plan that parallelize() will carry out, so that a model on the meta device is enough.
#pragma once

#include "trainer/models/projection.hpp"

#include <sealift/train.hpp>

#include <set>

namespace sealift::trainer {

/// Keeps the frozen weights of all projections of `model` as `stored`, and everything else (embeddings, norms, biases,
/// heads) as it is: what bitsandbytes and PEFT quantize.
inline train::StorageChoice store_projections(const torch::nn::Module& model,
                                              train::StoredAs stored = train::StoredAs::Nf4) {
  std::set<std::string> names;
  for (const auto& item : model.named_modules()) {
    if (std::dynamic_pointer_cast<ProjectionImpl>(item.value()) && !item.key().ends_with("lm_head")) {
      names.insert(item.key() + ".weight");
    }
  }
  return [names, stored](const std::string& name, const at::Tensor& parameter) {
    return names.contains(name) && !parameter.requires_grad() ? stored : train::StoredAs::Plain;
  };
}

/// Bytes on one rank, without activations and buffers.
struct TuningMemory {
  std::int64_t frozen = 0;   ///< what is kept of frozen parameters
  std::int64_t trained = 0;  ///< of trained ones: shards, their gradients and AdamW's two moments
  std::int64_t whole = 0;    ///< the most that is gathered at a time: the root, a unit, and the next one
  std::int64_t sum() const { return frozen + trained + whole; }
};

/// What `model` needs under `policy` on each of `ranks`. With P the padded elements of a flat over S ranks, a rank
/// keeps P / S elements of it, or of NF4 P / S / 2 + P / S / 64 bytes and 4 bytes of each 64 * 256 elements, and while
/// the unit is used P elements in the compute dtype, of trained parameters twice.
inline TuningMemory tuning_memory(torch::nn::Module& model, const train::Policy& policy, std::int64_t ranks) {
  using namespace train;
  const auto mesh = make_mesh(policy, ranks);
  TuningMemory memory;
  std::vector<std::int64_t> wholes;  // of each unit
  for (const auto& plan : plan_units(model, policy)) {
    std::int64_t whole = 0;
    for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
      const auto& tensor = plan.parameters[i].tensor;
      const auto stored = plan.stored_as(i);
      const bool trains = tensor.requires_grad();
      const bool everywhere = mesh.shard == 1 || plan.replicate || (plan.replicate_trained && trains);
      const auto shards = everywhere ? 1 : mesh.shard;
      const auto width = static_cast<std::int64_t>(c10::elementSize(
          tensor.is_floating_point() ? plan.options.precision.param_dtype.value_or(tensor.scalar_type())
                                     : tensor.scalar_type()));
      const auto own = stored_bytes(stored, tensor.numel(), tensor.scalar_type()) / shards +
                       (stored == StoredAs::Nf4 ? Nf4Codec::statistics_bytes(tensor.numel()) : 0);
      (trains ? memory.trained : memory.frozen) += trains ? 4 * own : own;
      const bool stays = everywhere && stored == StoredAs::Plain && !plan.options.precision.param_dtype;
      if (!stays) whole += tensor.numel() * width * (trains ? 2 : 1);
      if (stored != StoredAs::Plain && shards > 1) whole += stored_bytes(stored, tensor.numel(), tensor.scalar_type());
    }
    wholes.push_back(whole);
  }
  std::int64_t most = 0;
  for (std::size_t i = 1; i < wholes.size(); ++i) {
    most = std::max(most, wholes[i] + (i + 1 < wholes.size() ? wholes[i + 1] : 0));
  }
  memory.whole = wholes.front() + most;
  return memory;
}

}  // namespace sealift::trainer
