// SPDX-License-Identifier: Apache-2.0
// What a model folder's config.json says of a decoder: its sizes and which of the usual parts it is made of.
// First step of loading: `Decoder` is built from it and knows no family's name.
// A key that could change the numbers and is not read here is refused by name, so no model is trained half understood.
#pragma once

#include "trainer/models/families.hpp"
#include "trainer/models/rope_config.hpp"

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sealift::trainer {

/// Sparse layers: a router that sends each token to a few of many experts.
struct ExpertConfig {
  std::int64_t experts = 0;
  std::int64_t per_token = 0;     ///< experts that a token goes to
  std::int64_t width = 0;         ///< of an expert's hidden layer
  bool normalize = false;         ///< a token's weights of its experts sum to 1
  double loss_coefficient = 0;    ///< router_aux_loss_coef: what an objective multiplies the router's loss by
  std::vector<bool> layers = {};  ///< which layers are sparse; the others have a dense MLP
  bool mixtral_names = false;     ///< block_sparse_moe.experts.0.w1 … instead of mlp.experts.0.gate_proj …
};

struct DecoderConfig {
  std::string family;  ///< model_type, for messages
  std::int64_t vocabulary = 0;
  std::int64_t width = 0;      ///< hidden_size
  std::int64_t mlp_width = 0;  ///< intermediate_size
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  ///< divides `heads`
  std::int64_t head_dim = 0;  ///< even; heads * head_dim may differ from width
  std::int64_t max_positions = 0;
  double norm_eps = 1e-6;
  RopeConfig rope = {};
  std::optional<RopeConfig> window_rope = {};  ///< of layers with a window, where it is another
  std::vector<std::int64_t> windows = {};  ///< of each layer: a token sees itself and the window - 1 before it; 0: all
  bool qkv_bias = false, out_bias = false, mlp_bias = false;
  bool qk_norm = false;        ///< RMSNorm of each head's queries and keys
  bool qk_norm_whole = false;  ///< … or of those of all heads together, with qk_norm
  NormKind norm = NormKind::Rms;
  LayerNorms norms = {};
  bool fused_qkv = false, fused_gate_up = false;  ///< one projection: queries, keys, values; gate, up
  Activation activation = Activation::Silu;
  std::optional<double> attention_scale = {};  ///< of scores; unset: 1 / sqrt(head_dim)
  double score_cap = 0, logit_cap = 0;         ///< c: c * tanh(x / c) in place of scores or logits x; 0: none
  double clip_qkv = 0;                         ///< the most that queries, keys and values are, by amount; 0: any
  double embedding_scale = 1, residual_scale = 1;
  bool rounds_embedding_scale = false;  ///< to the embedding's dtype
  double logit_divisor = 1;
  bool tied_head = false;    ///< lm_head is the token embedding
  bool reward_head = false;  ///< one score of a sequence in place of lm_head (ForSequenceClassification, one label)
  std::optional<ExpertConfig> experts = {};
  c10::ScalarType dtype = c10::ScalarType::Float;  ///< of the stored parameters
  double initializer_range = 0.02;                 ///< standard deviation of first values
  std::optional<std::int64_t> padding_token = {};  ///< its embedding gets no gradient, as in torch.nn.Embedding
  std::vector<std::int64_t> end_tokens = {};       ///< eos_token_id: generation stops after one

  /// Whether layer `layer` has experts.
  bool is_sparse(std::int64_t layer) const { return experts && experts->layers.at(static_cast<std::size_t>(layer)); }
};

/// Reads MODEL_FOLDER/config.json of a model_type of families.hpp. Throws c10::Error that names the key, what was
/// expected and what it has.
DecoderConfig read_decoder_config(const std::filesystem::path& model_folder);

/// The same from the file's text; `where` is for messages.
DecoderConfig parse_decoder_config(std::string_view text, const std::string& where);

}  // namespace sealift::trainer
