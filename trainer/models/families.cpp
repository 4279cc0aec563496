// SPDX-License-Identifier: Apache-2.0
// See families.hpp.
#include "trainer/models/families.hpp"

#include <algorithm>
#include <numeric>

namespace sealift::trainer {
namespace {

constexpr LayerNorms kAfterOnly{.before_attention = nullptr,
                                .after_attention = "post_attention_layernorm",
                                .before_mlp = nullptr,
                                .after_mlp = "post_feedforward_layernorm"};

constexpr LayerNorms kBeforeAndAfter{.before_attention = "input_layernorm",
                                     .after_attention = "post_attention_layernorm",
                                     .before_mlp = "pre_feedforward_layernorm",
                                     .after_mlp = "post_feedforward_layernorm"};

constexpr LayerNorms kOfGlm4{.before_attention = "input_layernorm",
                             .after_attention = "post_self_attn_layernorm",
                             .before_mlp = "post_attention_layernorm",
                             .after_mlp = "post_mlp_layernorm"};

std::vector<Family> make_families() {
  return {
      {.name = "llama",
       .attention_bias = Family::BiasByKey,
       .mlp_bias_by_key = true,
       .adds = "biases by `attention_bias` and `mlp_bias`"},
      {.name = "mistral",
       .kv_heads = 8,
       .window = 4096,
       .windows = Family::EveryLayer,
       .adds = "a sliding window in every layer"},
      {.name = "mixtral",
       .theta = 1e6,
       .norm_eps = 1e-5,
       .kv_heads = 8,
       .windows = Family::EveryLayer,
       .experts = Family::Mixtral,
       .adds = "experts in every layer"},
      {.name = "qwen2",
       .kv_heads = 32,
       .window = 4096,
       .windows = Family::SomeLayersIfUsed,
       .attention_bias = Family::QkvBias,
       .adds = "biases of queries, keys and values; windows in some layers"},
      {.name = "qwen3",
       .kv_heads = 32,
       .head_dim = 128,
       .window = 4096,
       .windows = Family::SomeLayersIfUsed,
       .attention_bias = Family::BiasByKey,
       .qk_norm = Family::OfHeads,
       .adds = "norms of each head's queries and keys; windows in some layers"},
      {.name = "qwen3_moe",
       .kv_heads = 4,
       .window = 4096,
       .windows = Family::EveryLayerIfUsed,
       .attention_bias = Family::BiasByKey,
       .qk_norm = Family::OfHeads,
       .experts = Family::Qwen,
       .adds = "norms of each head's queries and keys; experts in some layers"},
      {.name = "olmo",
       .norm_eps = 1e-5,
       .attention_bias = Family::BiasByKey,
       .norm = NormKind::Plain,
       .clips_qkv = true,
       .padding_token = 1,
       .adds = "norms without parameters; queries, keys and values clipped by `clip_qkv`"},
      {.name = "olmo2",
       .norm_eps = 1e-5,
       .attention_bias = Family::BiasByKey,
       .qk_norm = Family::OfAll,
       .norms = kAfterOnly,
       .padding_token = 1,
       .adds = "norms behind attention and MLP, and of all queries and keys together"},
      {.name = "olmo3",
       .theta = 500000,
       .norm_eps = 1e-5,
       .window = 4096,
       .windows = Family::LayersByType,
       .full_every = 4,
       .attention_bias = Family::BiasByKey,
       .qk_norm = Family::OfAll,
       .norms = kAfterOnly,
       .window_theta = 500000,
       .padding_token = 1,
       .adds = "as `olmo2`; windows in three layers of four, rotary scaling in the others only"},
      {.name = "granite",
       .attention_bias = Family::BiasByKey,
       .mlp_bias_by_key = true,
       .multipliers = true,
       .reward = false,
       .adds = "multipliers of embedding, attention, residuals and logits"},
      {.name = "phi3",
       .norm_eps = 1e-5,
       .windows = Family::EveryLayer,
       .fused_qkv = true,
       .fused_gate_up = true,
       .rotary_part = 1,
       .original_positions = 4096,
       .padding_token = 32000,
       .off = "attention_bias mlp_bias lm_head_bias",
       .unread = "auto_map full_attn_mod interpolate_factor",
       .adds = "one projection for queries, keys and values, one for gate and up; `longrope`; heads turned in part"},
      {.name = "glm4",
       .norm_eps = 1.5625e-7,
       .kv_heads = 2,
       .head_dim = 128,
       .attention_bias = Family::QkvBiasByKey,
       .biased = true,
       .norms = kOfGlm4,
       .fused_gate_up = true,
       .rotary_part = 0.5,
       .rope_by_neighbours = true,
       .padding_token = 151329,
       .adds =
           "norms before and behind attention and MLP; half of each head turned, by neighbours; gate and up in one"},
      {.name = "gemma2",
       .kv_heads = 4,
       .head_dim = 256,
       .window = 4096,
       .windows = Family::LayersByType,
       .full_every = 2,
       .attention_bias = Family::BiasByKey,
       .norm = NormKind::RmsOnePlus,
       .norms = kBeforeAndAfter,
       .activation = Activation::GeluTanh,
       .query_scalar = 256,
       .score_cap = 50,
       .logit_cap = 30,
       .scales_embedding = true,
       .tied_head = true,
       .padding_token = 0,
       .off = "use_bidirectional_attention",
       .unread = "hidden_act sliding_window_size",
       .adds = "caps of scores and logits; norms before and behind attention and MLP, by 1 + weight; GELU; windows in "
               "every other layer"},
      {.name = "gemma3_text",
       .theta = 1e6,
       .kv_heads = 4,
       .head_dim = 256,
       .window = 4096,
       .windows = Family::LayersByType,
       .full_every = 6,
       .full_every_key = "sliding_window_pattern",
       .attention_bias = Family::BiasByKey,
       .qk_norm = Family::OfHeads,
       .norm = NormKind::RmsOnePlus,
       .norms = kBeforeAndAfter,
       .activation = Activation::GeluTanh,
       .window_theta = 10000,
       .window_theta_key = "rope_local_base_freq",
       .query_scalar = 256,
       .logit_cap = 0,
       .scales_embedding = true,
       .tied_head = true,
       .padding_token = 0,
       .reward_class = "Gemma3TextForSequenceClassification",
       .off = "use_bidirectional_attention",
       .unread = "_sliding_window_pattern hidden_act",
       .adds = "as `gemma2`, with norms of each head's queries and keys for the cap of scores; windows in five layers "
               "of six, which turn by another base"},
      {.name = "deepseek_v3",
       .kv_heads = 128,
       .attention_bias = Family::BiasByKey,
       .experts = Family::Sigmoid,
       .expert_defaults =
           {.experts = 256, .width = 2048, .groups = 8, .groups_used = 4, .first_dense = 3, .scale = 2.5},
       .latent = true,
       .unread = "auto_map",
       .adds = "latent attention; sigmoid routers with groups; shared experts, and dense layers first"},
      {.name = "glm4_moe",
       .norm_eps = 1e-5,
       .kv_heads = 8,
       .attention_bias = Family::QkvBiasByKey,
       .qk_norm = Family::OfHeadsByKey,
       .rotary_part = 0.5,
       .experts = Family::Sigmoid,
       .reward = false,
       .adds = "half of each head turned; `use_qk_norm`; routers and experts as `deepseek_v3`"},
      {.name = "gpt_oss",
       .theta = 150000,
       .norm_eps = 1e-5,
       .kv_heads = 8,
       .head_dim = 64,
       .window = 128,
       .windows = Family::LayersByType,
       .full_every = 2,
       .attention_bias = Family::BiasByKey,
       .biased = true,
       .experts = Family::GptOss,
       .expert_defaults = {.experts = 128, .per_token = 4},
       .sinks = true,
       .rope = R"({"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": false,
                   "original_max_position_embeddings": 4096})",
       .mxfp4 = true,
       .unread = "experts_per_token initial_context_length",
       .adds = "attention sinks; windows in every other layer; experts with biases and a clamped SwiGLU; MXFP4 read"},
      {.name = "llama4_text",
       .theta = 500000,
       .norm_eps = 1e-5,
       .kv_heads = 8,
       .head_dim = 128,
       .attention_bias = Family::BiasByKey,
       .rope_by_neighbours = true,
       .experts = Family::Llama4,
       .expert_defaults = {.experts = 16, .per_token = 1},
       .chunks = true,
       .block = "feed_forward",
       .reward = false,
       .unread = "cache_implementation for_llm_compressor router_aux_loss_coef",
       .adds = "layers that turn see chunks, others all; a temperature of far queries; experts with scaled inputs"},
  };
}

/// What people bring that is not here: the nearest that is, and what differs.
struct Absent {
  const char *name, *nearest, *differs;
};

constexpr Absent kAbsent[] = {
    {"qwen3_next", "qwen3_moe", "most of its layers have linear attention (a gated delta rule) and shared experts"},
    {"qwen3_5", "qwen3", "most of its layers have linear attention (a gated delta rule)"},
    {"qwen2_moe", "qwen3_moe", "it has shared experts behind a gate"},
    {"qwen2_vl", "qwen2", "it takes images"},
    {"qwen2_5_vl", "qwen2", "it takes images"},
    {"qwen3_vl", "qwen3", "it takes images"},
    {"gemma", "gemma2", "it has no caps, no windows and no norms behind attention and MLP"},
    {"gemma3", "gemma3_text", "it takes images; its text_config and language model alone are gemma3_text"},
    {"gemma3n", "gemma3_text", "it has several embeddings a token and layers that share caches"},
    {"phi", "llama", "attention and MLP stand side by side, and its MLP has no gate"},
    {"phimoe", "mixtral", "its router is sparsemixer's, and its norms have biases"},
    {"gpt2", "llama", "its positions are learned and its MLP has no gate"},
    {"gpt_neox", "llama", "attention and MLP stand side by side, and its MLP has no gate"},
    {"falcon", "llama", "attention and MLP stand side by side, and its MLP has no gate"},
    {"starcoder2", "mistral", "its norms have biases and its MLP has no gate"},
    {"stablelm", "llama", "its norms have biases and a part of each head is turned"},
    {"cohere", "llama", "attention and MLP stand side by side, and its logits are scaled"},
    {"cohere2", "llama", "attention and MLP stand side by side, and some layers have no rotation"},
    {"command-r", "llama", "attention and MLP stand side by side, and its logits are scaled"},
    {"glm", "glm4", "it has no norms behind attention and MLP"},
    {"glm4v", "glm4", "it takes images"},
    {"chatglm", "llama", "its code stands in the model's folder"},
    {"deepseek_v2", "deepseek_v3", "its router is a softmax, without a correction"},
    {"deepseek_v32", "deepseek_v3", "its attention is sparse, by an indexer"},
    {"kimi_k2", "deepseek_v3", "its code stands in the model's folder"},
    {"llama4", "llama4_text", "it takes images"},
    {"mistral3", "mistral", "it takes images"},
    {"ministral", "mistral", "its windows are of some layers"},
    {"mllama", "llama", "it takes images"},
    {"granitemoe", "granite", "it has experts"},
    {"granitemoehybrid", "granite", "most of its layers are Mamba's"},
    {"olmoe", "olmo2", "it has experts"},
    {"mamba", "llama", "its layers are state spaces without attention"},
    {"mamba2", "llama", "its layers are state spaces without attention"},
    {"jamba", "mixtral", "most of its layers are Mamba's"},
    {"nemotron", "llama", "its norms have biases and its MLP has no gate"},
    {"nemotron_h", "llama", "most of its layers are Mamba's"},
    {"exaone4", "olmo3", "its norms stand elsewhere, and layers without a window are not turned"},
    {"smollm3", "llama", "every fourth layer is not turned"},
    {"internlm2", "llama", "its code stands in the model's folder"},
    {"internlm3", "llama", "its code stands in the model's folder"},
    {"baichuan", "llama", "its code stands in the model's folder"},
    {"minicpm", "llama", "its code stands in the model's folder, and it scales embedding, residuals and logits"},
    {"seed_oss", "qwen2", "its biases are by key, and its attention's output has a dropout"},
    {"hunyuan_v1_dense", "qwen3", "its norms of queries and keys come after the rotation"},
    {"ernie4_5", "llama", "its rotation is by neighbours"},
    {"dbrx", "mixtral", "its projections are fused and clipped, and its norms have no biases"},
    {"bloom", "llama", "its positions are slopes of the scores (ALiBi)"},
    {"mpt", "llama", "its positions are slopes of the scores (ALiBi)"},
    {"bert", "llama", "it is an encoder"},
    {"t5", "llama", "it is an encoder with a decoder"},
};

/// Insertions, deletions and changes that make `a` of `b`; both are short.
std::size_t edits(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto before = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const auto change = before + (a[i - 1] == b[j - 1] ? 0 : 1);
      before = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

}  // namespace

const std::vector<Family>& families() {
  static const auto all = make_families();
  return all;
}

const Family* find_family(const std::string& model_type) {
  for (const auto& family : families()) {
    if (model_type == family.name) return &family;
  }
  return nullptr;
}

std::string nearest_family(const std::string& model_type) {
  for (const auto& absent : kAbsent) {
    if (model_type == absent.name) {
      return std::string("the nearest is ") + absent.nearest + ", and " + absent.differs;
    }
  }
  const auto* nearest = &families().front();
  auto fewest = std::string::npos;
  for (const auto& family : families()) {
    const auto count = edits(model_type.substr(0, 64), family.name);
    if (count < fewest) nearest = &family, fewest = count;
  }
  if (fewest <= 2) return std::string("the nearest name is ") + nearest->name;
  return "nothing is known here of how it differs from the nearest, llama";
}

}  // namespace sealift::trainer
