// SPDX-License-Identifier: Apache-2.0
// The parameter groups of AdamW: what decays and what does not, and LoRA+'s faster B.
// After `parallelize`, whose shards are grouped by name, since a shard of a matrix may be flat.
// The rule is that of transformers' Trainer, so that the same job decays the same parameters.
#pragma once

#include <sealift/train.hpp>

#include <optional>
#include <regex>

namespace sealift::trainer {

/// Whether weight decay applies to parameter `name`: not to biases and norms, by Trainer.get_decay_parameter_names.
inline bool decays(const std::string& name) {
  static const std::regex kept(R"(bias|layernorm|rmsnorm|(^|\.)norm($|\.)|_norm($|\.))", std::regex::icase);
  return !std::regex_search(name, kept);
}

struct OptimizerOptions {
  double learning_rate = 1e-4;
  double weight_decay = 0.1;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
  std::optional<double> lora_b_ratio = {};  ///< LoRA+ (arXiv:2402.12354): of the rate of lora_B to the others'
};

/// One group of equal options.
struct ShardGroup {
  bool decays = true, is_lora_b = false;
  std::vector<at::Tensor> shards = {};

  /// Its learning rate, where the others have `rate`.
  double rate(double rate, const OptimizerOptions& options) const {
    return is_lora_b ? rate * options.lora_b_ratio.value_or(1) : rate;
  }
};

/// The groups of these parameters that are not empty, in an order that is the same on all ranks.
inline std::vector<ShardGroup> decay_groups(const std::vector<train::NamedTensor>& shards,
                                            const OptimizerOptions& options) {
  std::vector<ShardGroup> groups = {{true, false}, {false, false}, {true, true}, {false, true}};
  for (const auto& [name, shard] : shards) {
    const bool is_lora_b = options.lora_b_ratio && name.find("lora_B") != std::string::npos;
    groups[(is_lora_b ? 2U : 0U) + (decays(name) ? 0U : 1U)].shards.push_back(shard);
  }
  std::erase_if(groups, [](const ShardGroup& group) { return group.shards.empty(); });
  return groups;
}

inline train::FusedAdamW make_optimizer(const std::vector<ShardGroup>& groups, const OptimizerOptions& options,
                                        train::Moments moments) {
  std::vector<torch::optim::OptimizerParamGroup> parts;
  for (const auto& group : groups) {
    auto adamw = torch::optim::AdamWOptions(group.rate(options.learning_rate, options))
                     .weight_decay(group.decays ? options.weight_decay : 0)
                     .betas({options.beta1, options.beta2})
                     .eps(options.epsilon);
    parts.emplace_back(group.shards, std::make_unique<torch::optim::AdamWOptions>(adamw));
  }
  return train::FusedAdamW(parts, {}, moments);
}

/// Gives every group of `optimizer`, made of `groups`, its part of `rate`.
inline void set_rate(torch::optim::Optimizer& optimizer, const std::vector<ShardGroup>& groups,
                     const OptimizerOptions& options, double rate) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    optimizer.param_groups()[i].options().set_lr(groups[i].rate(rate, options));
  }
}

}  // namespace sealift::trainer
