// SPDX-License-Identifier: Apache-2.0
// The planner's numbers of a model, read off the model itself, which is on the meta device.
// The only part of the planner that knows LibTorch; `plan`, `auto` and the tests that measure begin here.
// From the units that parallelize() would make, so that what is planned is what will run.
#pragma once

#include "trainer/models/decoder_config.hpp"
#include "trainer/plan/model_shape.hpp"
#include "trainer/tuning/lora.hpp"

#include <sealift/train.hpp>

namespace sealift::trainer::plan {

inline Stored stored_of(train::StoredAs stored) {
  return stored == train::StoredAs::Plain ? Stored::Plain : stored == train::StoredAs::Nf4 ? Stored::Nf4 : Stored::Int8;
}

inline DecoderShape decoder_shape(const DecoderConfig& config) {
  DecoderShape shape{.family = config.family,
                     .vocabulary = config.vocabulary,
                     .width = config.width,
                     .mlp_width = config.mlp_width,
                     .layers = config.layers,
                     .heads = config.heads,
                     .kv_heads = config.kv_heads,
                     .head_dim = config.head_dim,
                     .qkv_bias = config.qkv_bias,
                     .out_bias = config.out_bias,
                     .mlp_bias = config.mlp_bias,
                     .qk_norm = config.qk_norm,
                     .tied_head = config.tied_head,
                     .qk_norm_whole = config.qk_norm_whole,
                     .clips = config.clip_qkv > 0,
                     .plain_norms = config.norm == NormKind::Plain,
                     .norm_before_attention = config.norms.before_attention != nullptr,
                     .norm_after_attention = config.norms.after_attention != nullptr,
                     .norm_before_mlp = config.norms.before_mlp != nullptr,
                     .norm_after_mlp = config.norms.after_mlp != nullptr,
                     .scales_embedding = config.embedding_scale != 1,
                     .scales_residuals = config.residual_scale != 1,
                     .scales_logits = config.logit_divisor != 1,
                     .one_plus_norms = config.norm == NormKind::RmsOnePlus,
                     .fused_qkv = config.fused_qkv,
                     .fused_gate_up = config.fused_gate_up,
                     .caps_scores = config.score_cap > 0,
                     .caps_logits = config.logit_cap > 0,
                     .turned = {},
                     .sparse = {},
                     .windows = config.windows,
                     .chunks = config.chunks};
  shape.sinks = config.sinks;
  shape.norms_turned = config.turned_norm_eps.has_value();
  shape.heats = config.temperature.has_value();
  for (std::int64_t layer = 0; !config.unturned.empty() && layer < config.layers; ++layer)
    shape.turned.push_back(config.turns(layer));
  if (config.latent) {
    shape.latent_queries = config.latent->queries;
    shape.latent_keys = config.latent->keys;
    shape.latent_plain = config.latent->plain;
    shape.latent_turned = config.latent->turned;
    shape.latent_values = config.latent->values;
  }
  if (config.experts) {
    shape.experts = config.experts->experts;
    shape.per_token = config.experts->per_token;
    shape.expert_width = config.experts->width;
    shape.sparse = config.experts->layers;
    shape.shared_width = config.experts->shared_width;
    shape.sigmoid_router = config.experts->routing == Routing::Sigmoid;
    shape.router_bias = config.experts->routing == Routing::SoftmaxOfBest;
    shape.expert_biases = config.experts->biases;
    shape.clamps = config.experts->gate == ExpertGate::Clamped;
    shape.scales_inputs = config.experts->routing == Routing::SigmoidOfBest;
  }
  return shape;
}

/// The shape of `model`, adapted as `lora` says (null: trained whole), with the units that `policy` makes.
inline ModelShape model_shape(torch::nn::Module& model, const DecoderConfig& config, const train::Policy& policy,
                              const LoraOptions* lora = nullptr) {
  ModelShape shape{.decoder = decoder_shape(config), .units = {}};
  if (lora) {
    shape.lora_rank = lora->rank;
    shape.lora_dropout = lora->dropout;
  }
  for (const auto& plan : train::plan_units(model, policy)) {
    UnitShape unit{.path = plan.path, .parameters = {}};
    for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
      const auto& [name, tensor] = plan.parameters[i];
      const bool has_rows = tensor.dim() > 0 && tensor.numel() > 0;
      unit.parameters.push_back({.name = name,
                                 .numel = tensor.numel(),
                                 .row = has_rows ? tensor.numel() / tensor.size(0) : 1,
                                 .element_bytes = static_cast<std::int64_t>(tensor.element_size()),
                                 .trained = tensor.requires_grad(),
                                 .stored = stored_of(plan.stored_as(i))});
    }
    shape.units.push_back(std::move(unit));
  }
  return shape;
}

}  // namespace sealift::trainer::plan
