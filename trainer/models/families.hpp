// SPDX-License-Identifier: Apache-2.0
// Families of decoders: what differs between them, a row each, and what a config.json of each may leave out.
// Below decoder_config, which reads a file by its family's row; the decoder itself knows no family's name.
// Defaults are those of transformers' configuration classes, whose config.json files leave them out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sealift::trainer {

/// Names of a layer's norms, as the files have them; null: there is none at that place.
struct LayerNorms {
  const char* before_attention = "input_layernorm";
  const char* after_attention = nullptr;  ///< before the residual is added
  const char* before_mlp = "post_attention_layernorm";
  const char* after_mlp = nullptr;  ///< before the residual is added
};

/// How a norm scales: by its weight, by 1 + weight, or as a LayerNorm without parameters.
enum class NormKind { Rms, RmsOnePlus, Plain };

/// Of the gate in an MLP.
enum class Activation { Silu, GeluTanh };

/// What a family with experts leaves out of its files; from `width` on of `Family::Sigmoid`.
struct ExpertDefaults {
  std::int64_t experts = 128, per_token = 8, width = 1408;
  std::int64_t groups = 1, groups_used = 1;
  std::int64_t first_dense = 1;  ///< layers that have no experts
  double scale = 1;
};

struct Family {
  const char* name;
  double theta = 10000;
  double norm_eps = 1e-6;
  std::int64_t kv_heads = 0;  ///< if not given; 0: as many as heads
  std::int64_t head_dim = 0;  ///< if not given; 0: width / heads
  std::int64_t window = 0;    ///< if not given
  enum { NoWindow, EveryLayer, EveryLayerIfUsed, SomeLayersIfUsed, LayersByType } windows = NoWindow;
  std::int64_t full_every = 0;  ///< LayersByType: which layers have no window, if not given
  const char* full_every_key = nullptr;
  enum { NoBias, QkvBias, BiasByKey, QkvBiasByKey } attention_bias = NoBias;
  bool biased = false;  ///< attention_bias, if not given
  bool mlp_bias_by_key = false;
  enum { NoQkNorm, OfHeads, OfHeadsByKey, OfAll } qk_norm = NoQkNorm;  ///< OfHeadsByKey: use_qk_norm, else none
  NormKind norm = NormKind::Rms;
  LayerNorms norms = {};
  bool fused_qkv = false, fused_gate_up = false;  ///< one projection, qkv_proj or gate_up_proj
  Activation activation = Activation::Silu;       ///< GeluTanh is hidden_activation's, not hidden_act's
  double window_theta = 0;                        ///< of layers with a window, if not given; 0: that of all layers
  const char* window_theta_key = nullptr;
  std::optional<double> rotary_part = {};          ///< partial_rotary_factor, if not given; unset: refused
  bool rope_by_neighbours = false;                 ///< see RopeConfig
  std::int64_t original_positions = 0;             ///< has longrope, and this context of pretraining, if not given
  std::optional<double> query_scalar = {};         ///< query_pre_attn_scalar, if not given; unset: head_dim
  std::optional<double> score_cap = {};            ///< attn_logit_softcapping, if not given, 0: none; unset: refused
  std::optional<double> logit_cap = {};            ///< final_logit_softcapping, in the same way
  bool scales_embedding = false;                   ///< by the root of its width, rounded to its dtype
  bool tied_head = false;                          ///< tie_word_embeddings, if not given
  bool multipliers = false;                        ///< granite's four
  bool clips_qkv = false;                          ///< clip_qkv
  std::optional<std::int64_t> padding_token = {};  ///< pad_token_id, if not given
  enum { NoExperts, Mixtral, Qwen, Sigmoid, GptOss, Llama4 } experts = NoExperts;
  ExpertDefaults expert_defaults = {};
  bool latent = false;                 ///< latent attention
  bool sinks = false;                  ///< each head has a score that no token has
  bool chunks = false;                 ///< Llama 4's layers: chunks that turn, and layers that see all and do not
  const char* rope = nullptr;          ///< rope_parameters, if not given
  bool mxfp4 = false;                  ///< quantization_config may say so
  const char* block = "mlp";           ///< the name of what follows attention
  bool reward = true;                  ///< transformers has …ForSequenceClassification
  const char* reward_class = nullptr;  ///< its name, where it is not that of …ForCausalLM
  const char* off = "";                ///< flags that its files have and that must be false
  const char* unread = "";             ///< keys that its files have and transformers does not read of it
  const char* adds = "";               ///< to the common decoder, in words
};

/// All of them.
const std::vector<Family>& families();

/// null: there is none of this name.
const Family* find_family(const std::string& model_type);

/// Of an unknown model_type: the nearest, and what differs, as a refusal says it.
std::string nearest_family(const std::string& model_type);

}  // namespace sealift::trainer
