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

/// How a router's logits become choices and weights.
enum class Routing {
  Softmax,        ///< of all experts, then the best
  Sigmoid,        ///< of each; chosen by these with a correction added, within the best groups (DeepSeek)
  SoftmaxOfBest,  ///< of the best, whose logits have biases (gpt_oss)
  SigmoidOfBest,  ///< of the best: what their inputs are multiplied by (Llama 4)
};

/// Of an expert's hidden layer, whose gate and up are made together.
enum class ExpertGate {
  Halves,   ///< silu(gate) * up; gate's elements, then up's
  Clamped,  ///< (up + 1) * gate * sigmoid(alpha * gate), both clamped; gate and up by turns
};

/// Sparse layers: a router that sends each token to a few of many experts.
struct ExpertConfig {
  std::int64_t experts = 0;
  std::int64_t per_token = 0;     ///< experts that a token goes to
  std::int64_t width = 0;         ///< of an expert's hidden layer
  bool normalize = false;         ///< a token's weights of its experts sum to 1
  double loss_coefficient = 0;    ///< router_aux_loss_coef: what an objective multiplies the router's loss by
  std::vector<bool> layers = {};  ///< which layers are sparse; the others have a dense MLP
  bool mixtral_names = false;     ///< block_sparse_moe.experts.0.w1 … instead of mlp.experts.0.gate_proj …
  Routing routing = Routing::Softmax;
  std::int64_t groups = 1;                ///< Sigmoid: experts in equal groups …
  std::int64_t groups_used = 1;           ///< … of which a token uses the best
  double scale = 1;                       ///< Sigmoid: of the weights, after they are normalized
  const char* router = "gate";            ///< its name in the block
  const char* shared = "shared_experts";  ///< that of the MLP that all tokens pass
  bool by_columns = false;                ///< matrices are [in, out], and stored as they are: all experts together
  bool biases = false;                    ///< of experts' matrices
  ExpertGate gate = ExpertGate::Halves;
  double alpha = 0, limit = 0;    ///< Clamped
  std::int64_t shared_width = 0;  ///< hidden layer of an MLP that all tokens pass beside their experts; 0: none
};

/// Latent attention: widths of what a token has, and of a head's parts.
struct LatentConfig {
  std::int64_t queries = 0;  ///< of the vector that queries are made from; 0: from the input
  std::int64_t keys = 0;     ///< of the vector that keys and values are made from
  std::int64_t plain = 0;    ///< elements of a head's queries and keys that do not turn
  std::int64_t turned = 0;   ///< … that do; even. The keys' are one for all heads
  std::int64_t values = 0;   ///< of a head
};

/// What multiplies queries of layers that do not turn: 1 + scale * log(1 + floor((position + 1) / floor)).
struct Temperature {
  double scale = 0, floor = 1;
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
  std::vector<std::int64_t> chunks =
      {};                           ///< of each layer: a token sees those before it in its own; 0: all. Empty: none
  std::vector<bool> unturned = {};  ///< layers without rotation; empty: none
  std::optional<double> turned_norm_eps = {};   ///< of a norm without weights, of queries and keys that turned
  std::optional<Temperature> temperature = {};  ///< of layers without rotation
  bool sinks = false;                           ///< each head has a score that no token has
  bool mxfp4 = false;                           ///< the files hold experts in 4 bits, which are read as numbers
  const char* block = "mlp";                    ///< the name of what follows attention
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
  std::optional<LatentConfig> latent = {};         ///< of latent attention, whose head_dim is plain + turned
  c10::ScalarType dtype = c10::ScalarType::Float;  ///< of the stored parameters
  double initializer_range = 0.02;                 ///< standard deviation of first values
  std::optional<std::int64_t> padding_token = {};  ///< its embedding gets no gradient, as in torch.nn.Embedding
  std::vector<std::int64_t> end_tokens = {};       ///< eos_token_id: generation stops after one

  /// Elements of a head that rotary tables are made for.
  std::int64_t turned_dim() const { return latent ? latent->turned : head_dim; }
  /// Whether heads of layer `layer` turn.
  bool turns(std::int64_t layer) const { return unturned.empty() || !unturned.at(static_cast<std::size_t>(layer)); }
  /// Whether layer `layer` has experts.
  bool is_sparse(std::int64_t layer) const { return experts && experts->layers.at(static_cast<std::size_t>(layer)); }
};

/// Reads MODEL_FOLDER/config.json of a model_type of families.hpp. Throws c10::Error that names the key, what was
/// expected and what it has.
DecoderConfig read_decoder_config(const std::filesystem::path& model_folder);

/// The same from the file's text; `where` is for messages.
DecoderConfig parse_decoder_config(std::string_view text, const std::string& where);

}  // namespace sealift::trainer
