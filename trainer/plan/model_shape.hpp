// SPDX-License-Identifier: Apache-2.0
// What the planner knows of a model: its units' parameters and its decoder's sizes, as plain numbers.
// First in the flow: meta_shape.hpp reads it off a model without memory; memory and step_shape compute with it.
// No LibTorch, so that the arithmetic is tested in milliseconds; padding repeats the engine's rule, which a test holds
// to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sealift::trainer::plan {

/// What is kept of a frozen parameter.
enum class Stored { Plain, Int8, Nf4 };

struct ParameterShape {
  std::string name;
  std::int64_t numel = 0;
  std::int64_t row = 1;            ///< elements of a row: the product of all sizes but the first
  std::int64_t element_bytes = 4;  ///< of the dtype in which a rank keeps it
  bool trained = true;
  Stored stored = Stored::Plain;
};

struct UnitShape {
  std::string path;  ///< empty: the root
  std::vector<ParameterShape> parameters;
};

/// A decoder's sizes, as config.json has them.
struct DecoderShape {
  std::string family;
  std::int64_t vocabulary = 0, width = 0, mlp_width = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
  bool qkv_bias = false, out_bias = false, mlp_bias = false, qk_norm = false, tied_head = false;
  bool qk_norm_whole = false;  ///< of all heads together
  bool clips = false;          ///< queries, keys and values
  bool plain_norms = false;    ///< LayerNorm without parameters
  bool norm_before_attention = true, norm_after_attention = false, norm_before_mlp = true, norm_after_mlp = false;
  bool scales_embedding = false, scales_residuals = false, scales_logits = false;
  bool one_plus_norms = false;                    ///< computed in fp32
  bool fused_qkv = false, fused_gate_up = false;  ///< one projection
  bool caps_scores = false, caps_logits = false;
  std::int64_t latent_queries = 0, latent_keys = 0, latent_plain = 0, latent_turned = 0, latent_values = 0;
  bool sinks = false, norms_turned = false, heats = false;  ///< heats: queries of layers that do not turn
  std::vector<bool> turned;                                 ///< which layers' heads turn; empty: all
  std::int64_t experts = 0, per_token = 0, expert_width = 0, shared_width = 0;
  bool sigmoid_router = false;  ///< computed in fp32
  bool router_bias = false, expert_biases = false, clamps = false, scales_inputs = false;
  std::vector<bool> sparse;                             ///< which layers have experts; empty: none
  std::vector<std::int64_t> windows = {}, chunks = {};  ///< of each layer, as DecoderConfig's; 0 or empty: all are seen

  bool turns(std::int64_t layer) const { return turned.empty() || turned[static_cast<std::size_t>(layer)]; }
  bool is_sparse(std::int64_t layer) const { return !sparse.empty() && sparse[static_cast<std::size_t>(layer)]; }
  std::int64_t window(std::int64_t layer) const { return of_layer(windows, layer); }
  std::int64_t chunk(std::int64_t layer) const { return of_layer(chunks, layer); }

 private:
  static std::int64_t of_layer(const std::vector<std::int64_t>& all, std::int64_t layer) {
    return all.empty() ? 0 : all[static_cast<std::size_t>(layer)];
  }
};

struct ModelShape {
  DecoderShape decoder;
  std::int64_t lora_rank = 0;  ///< of every projection but the head; 0: the whole model is trained
  double lora_dropout = 0;
  std::vector<UnitShape> units;  ///< the root first, then one for each layer, in the order of the model

  std::int64_t parameters() const;  ///< elements
  std::int64_t trained() const;     ///< elements
};

/// Parameters that are one buffer: of a unit, kept alike, of one dtype, all trained or all frozen.
struct FlatShape {
  std::vector<ParameterShape> parameters;
  std::int64_t padded = 0;  ///< elements of the whole, a multiple of the shards
  std::int64_t shards = 1;

  bool trained() const { return parameters.front().trained; }
  Stored stored() const { return parameters.front().stored; }
  std::int64_t shard() const { return padded / shards; }
  std::int64_t kept_bytes() const;        ///< of a rank's shard: elements, or what they are encoded in
  std::int64_t statistics_bytes() const;  ///< NF4: what every rank has of all parameters
};

/// The flats of `unit` over `shards` ranks, in the engine's order; padding as make_flat_layout's.
std::vector<FlatShape> flats_of(const UnitShape& unit, std::int64_t shards);

/// Bytes of `numel` elements, a multiple of the encoding's block, of `element_bytes` each where they are plain.
std::int64_t stored_bytes_of(Stored stored, std::int64_t numel, std::int64_t element_bytes);

}  // namespace sealift::trainer::plan
