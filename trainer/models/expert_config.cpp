// SPDX-License-Identifier: Apache-2.0
// See expert_config.hpp.
#include "trainer/models/expert_config.hpp"

#include <c10/util/Exception.h>

#include <stdexcept>

namespace sealift::trainer {
namespace {

constexpr std::int64_t kMostExperts = 65536, kMostWidth = 1 << 22;

/// The number of experts: transformers reads either of two names, and the family's own first.
std::int64_t read_count(ConfigKeys& keys, std::string name, const std::string& other, std::int64_t otherwise) {
  if (!keys.find(name) && keys.find(other)) name = other;
  keys.ignore(other);
  return keys.integer(name, 1, kMostExperts, otherwise);
}

std::int64_t read_per_token(ConfigKeys& keys, std::int64_t experts, std::int64_t otherwise) {
  return keys.integer("num_experts_per_tok", 1, experts, std::min(experts, otherwise));
}

ExpertConfig read_mixtral(ConfigKeys& keys, std::int64_t layers, std::int64_t mlp_width) {
  ExpertConfig config{.mixtral_names = true};
  config.experts = read_count(keys, "num_local_experts", "num_experts", 8);
  config.per_token = read_per_token(keys, config.experts, 2);
  config.loss_coefficient = keys.number("router_aux_loss_coef", 0, 1e6, 0.001);
  config.width = mlp_width;
  config.normalize = true;
  config.layers.assign(static_cast<std::size_t>(layers), true);
  if (keys.number("router_jitter_noise", 0, 1e6, 0.0) != 0) keys.refuse("router_jitter_noise", "0");
  return config;
}

ExpertConfig read_qwen(ConfigKeys& keys, std::int64_t layers) {
  ExpertConfig config;
  config.experts = read_count(keys, "num_experts", "num_local_experts", 128);
  config.per_token = read_per_token(keys, config.experts, 8);
  config.loss_coefficient = keys.number("router_aux_loss_coef", 0, 1e6, 0.001);
  config.width = keys.integer("moe_intermediate_size", 1, kMostWidth, 768);
  config.normalize = keys.flag("norm_topk_prob", false);
  const auto step = keys.integer("decoder_sparse_step", 1, ConfigKeys::kMost, 1);
  for (std::int64_t layer = 0; layer < layers; ++layer) config.layers.push_back((layer + 1) % step == 0);
  if (const auto* dense = keys.find("mlp_only_layers")) {
    if (!dense->is_array()) keys.refuse("mlp_only_layers", "a list of layers");
    for (const auto& each : *dense) {
      if (!each.is_number_unsigned()) keys.refuse("mlp_only_layers", "a list of layers");
      const auto layer = each.get<std::uint64_t>();
      if (layer < config.layers.size()) config.layers[layer] = false;
    }
  }
  return config;
}

/// Groups of experts: equal, of two at least, whose best have as many experts as a token goes to.
void read_groups(ConfigKeys& keys, ExpertConfig& config, std::int64_t groups, std::int64_t used) {
  config.groups = keys.integer("n_group", 1, config.experts, groups);
  if (config.experts % config.groups != 0 || config.experts / config.groups < 2)
    keys.refuse("n_group", c10::str("a divisor of the ", config.experts, " experts that leaves two for each group"));
  config.groups_used = keys.integer("topk_group", 1, config.groups, std::min(config.groups, used));
  const auto most = config.groups_used * (config.experts / config.groups);
  if (config.per_token > most)
    keys.refuse("num_experts_per_tok", c10::str("at most the ", most, " experts of the groups that a token uses"));
}

/// What the files' own code reads and transformers' does not: it must say what is done anyway.
void check_sigmoid_words(ConfigKeys& keys) {
  if (keys.text("scoring_func", "sigmoid") != "sigmoid") keys.refuse("scoring_func", "sigmoid");
  if (keys.text("topk_method", "noaux_tc") != "noaux_tc") keys.refuse("topk_method", "noaux_tc");
  if (keys.integer("moe_layer_freq", 1, ConfigKeys::kMost, 1) != 1) keys.refuse("moe_layer_freq", "1");
  for (const char* key : {"ep_size", "num_nextn_predict_layers", "num_mtp_layers", "aux_loss_alpha", "seq_aux"})
    keys.ignore(key);  // of a serving program, of layers beyond the config, and of a loss that is not computed
}

ExpertConfig read_sigmoid(ConfigKeys& keys, const ExpertDefaults& family, std::int64_t layers) {
  ExpertConfig config{.routing = Routing::Sigmoid};
  config.experts = read_count(keys, "n_routed_experts", "num_local_experts", family.experts);
  config.per_token = read_per_token(keys, config.experts, family.per_token);
  config.width = keys.integer("moe_intermediate_size", 1, kMostWidth, family.width);
  config.normalize = keys.flag("norm_topk_prob", !keys.has("norm_topk_prob"));
  config.scale = keys.number("routed_scaling_factor", -1e6, 1e6, family.scale);
  config.shared_width = config.width * keys.integer("n_shared_experts", 1, 1024, 1);
  read_groups(keys, config, family.groups, family.groups_used);
  const auto dense = keys.integer("first_k_dense_replace", 0, ConfigKeys::kMost, family.first_dense);
  for (std::int64_t layer = 0; layer < layers; ++layer) config.layers.push_back(layer >= dense);
  check_sigmoid_words(keys);
  return config;
}

ExpertConfig read_gpt_oss(ConfigKeys& keys, const ExpertDefaults& family, std::int64_t layers, std::int64_t mlp_width) {
  ExpertConfig config{.routing = Routing::SoftmaxOfBest};
  config.experts = read_count(keys, "num_local_experts", "num_experts", family.experts);
  config.per_token = read_per_token(keys, config.experts, family.per_token);
  config.loss_coefficient = keys.number("router_aux_loss_coef", 0, 1e6, 0.001);
  config.width = mlp_width;
  config.layers.assign(static_cast<std::size_t>(layers), true);
  config.router = "router";
  config.by_columns = config.biases = true;
  config.gate = ExpertGate::Clamped;
  config.alpha = keys.number("swiglu_alpha", -1e3, 1e3, 1.702);
  config.limit = keys.number("swiglu_limit", 1e-3, 1e6, 7.0);
  return config;
}

/// Which layers are sparse: those of a list, or every so many.
std::vector<bool> read_sparse_layers(ConfigKeys& keys, std::int64_t layers) {
  const auto step = keys.integer("interleave_moe_layer_step", 1, ConfigKeys::kMost, 1);
  const auto* list = keys.find("moe_layers");
  std::vector<bool> sparse(static_cast<std::size_t>(layers), false);
  for (std::int64_t layer = step; !list && layer <= layers; layer += step)
    sparse[static_cast<std::size_t>(layer - 1)] = true;
  if (!list) return sparse;
  if (!list->is_array() || list->size() > 65536) keys.refuse("moe_layers", "a list of layers");
  for (const auto& each : *list) {
    if (!each.is_number_unsigned()) keys.refuse("moe_layers", "a list of layers");
    const auto layer = each.get<std::uint64_t>();
    if (layer < sparse.size()) sparse[layer] = true;
  }
  return sparse;
}

ExpertConfig read_llama4(ConfigKeys& keys, const ExpertDefaults& family, std::int64_t layers, std::int64_t width) {
  ExpertConfig config{.routing = Routing::SigmoidOfBest};
  config.experts = read_count(keys, "num_local_experts", "num_experts", family.experts);
  config.per_token = read_per_token(keys, config.experts, family.per_token);
  config.width = config.shared_width = width;
  config.layers = read_sparse_layers(keys, layers);
  config.router = "router";
  config.shared = "shared_expert";
  config.by_columns = true;
  if (keys.number("router_jitter_noise", 0, 1e6, 0.0) != 0) keys.refuse("router_jitter_noise", "0");
  return config;
}

}  // namespace

ExpertConfig read_experts(ConfigKeys& keys, const Family& family, std::int64_t layers, std::int64_t mlp_width) {
  switch (family.experts) {
    case Family::Mixtral:
      return read_mixtral(keys, layers, mlp_width);
    case Family::Sigmoid:
      return read_sigmoid(keys, family.expert_defaults, layers);
    case Family::GptOss:
      return read_gpt_oss(keys, family.expert_defaults, layers, mlp_width);
    case Family::Llama4:
      return read_llama4(keys, family.expert_defaults, layers, mlp_width);
    default:
      return read_qwen(keys, layers);
  }
}

void check_expert_ranks(const DecoderConfig& config, std::int64_t ranks, const std::string& setting,
                        const std::string& model) {
  if (ranks == 1) return;
  const auto asked = setting + " is " + std::to_string(ranks) + ", but " + model + " has ";
  if (!config.experts) throw std::invalid_argument(asked + "no experts; leave it out");
  if (config.experts->experts % ranks == 0) return;
  throw std::invalid_argument(asked + std::to_string(config.experts->experts) +
                              " experts in a layer, which cannot be divided by it; use a divisor");
}

}  // namespace sealift::trainer
