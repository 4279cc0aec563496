// SPDX-License-Identifier: Apache-2.0
// See job_model.hpp.
#include "trainer/fine_tune/job_model.hpp"

#include "trainer/models/expert_config.hpp"
#include "trainer/models/hf_folder.hpp"
#include "trainer/models/weight_files.hpp"
#include "trainer/tuning/peft_format.hpp"

namespace sealift::trainer {
namespace {

at::ScalarType parameter_dtype(const FineTuneOptions& options) {
  return options.has_adapters() ? compute_dtype(options.precision).value_or(at::kFloat) : at::kFloat;
}

}  // namespace

std::optional<at::ScalarType> compute_dtype(const std::string& precision) {
  if (precision == "bf16") return at::kBFloat16;
  if (precision == "fp16") return at::kHalf;
  return std::nullopt;
}

Model build_on_meta(const FineTuneOptions& options, const DecoderConfig& config) {
  const train::MetaDevice meta;
  return Model(config, DecoderOptions{.recompute = options.gradient_checkpointing, .dtype = parameter_dtype(options)});
}

DecoderConfig config_of(const FineTuneOptions& options) {
  auto config = read_decoder_config(options.model);
  if (config.reward_head && options.task != Task::Reward) {
    throw std::invalid_argument(options.model + " is a reward model; sealift-train " + to_string(options.task) +
                                " needs a language model");
  }
  config.reward_head = options.task == Task::Reward;
  if (stores_own_head(options.model, config)) {
    config.tied_head = false;  // said in what is saved, too
  }
  check_expert_ranks(config, options.expert_model_parallel_size, "expert_model_parallel_size", options.model);
  return config;
}

LoraOptions lora_of(const FineTuneOptions& options) {
  auto lora = options.adapters.empty() ? LoraOptions{.rank = options.lora_rank,
                                                     .alpha = options.lora_alpha,
                                                     .dropout = options.lora_dropout,
                                                     .target_modules = options.target_modules,
                                                     .target_regex = options.target_regex,
                                                     .modules_to_save = options.modules_to_save,
                                                     .rank_stabilized = options.use_rslora,
                                                     .dora = options.use_dora}
                                       : read_adapter_config(options.adapters.front());
  auto& whole = lora.modules_to_save;
  if (options.task == Task::Reward && std::find(whole.begin(), whole.end(), kScore) == whole.end()) {
    whole.push_back(kScore);
  }
  return lora;
}

void adapt(Model& model, const FineTuneOptions& options) {
  if (!options.has_adapters()) return;
  try {
    add_lora(*model, lora_of(options));
  } catch (c10::Error& error) {
    if (!options.adapters.empty()) error.add_context("in the adapter " + options.adapters.front());
    throw;
  }
}

FirstValues first_values_of(const FineTuneOptions& options, const DecoderConfig& config) {
  const std::filesystem::path folder(options.model);
  const auto seed = static_cast<std::uint64_t>(options.seed);
  const bool has_files = std::filesystem::exists(folder / "model.safetensors") ||
                         std::filesystem::exists(folder / "model.safetensors.index.json");
  if (!has_files && options.task == Task::Pretrain) {
    return {.base = std::make_unique<train::InitFunction>(first_values(config, seed))};
  }
  FirstValues values;
  if (config.reward_head) values.score = std::make_unique<train::InitFunction>(first_values(config, seed));
  values.base = model_folder_source(folder, config, values.score.get());
  if (!options.has_adapters()) return values;
  if (options.adapters.empty()) {
    values.adapted = std::make_unique<LoraSource>(*values.base, lora_of(options), seed);
  } else {
    const std::filesystem::path from(options.adapters.front());
    check_base(from, folder);
    values.adapted =
        adapter_source(from, *values.base, read_adapter_config(from), config.tied_head && !config.reward_head);
  }
  return values;
}

ModelSize size_of(const torch::nn::Module& model) {
  ModelSize size;
  for (const auto& parameter : model.parameters()) {
    size.parameters += parameter.numel();
    if (parameter.requires_grad()) size.trainable += parameter.numel();
  }
  return size;
}

}  // namespace sealift::trainer
