// SPDX-License-Identifier: Apache-2.0
// The reading of a config.json that decoder_config.hpp declares: a family's row, then its keys, each by who knows it.
#include "trainer/models/decoder_config.hpp"

#include "trainer/models/chunk_config.hpp"
#include "trainer/models/config_keys.hpp"
#include "trainer/models/expert_config.hpp"
#include "trainer/models/latent_config.hpp"
#include "trainer/models/rope_config.hpp"

#include <sealift/safetensors.hpp>

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <sstream>

namespace sealift::trainer {
namespace {

using safetensors::Json;

constexpr std::uintmax_t kMaxBytes = 4 << 20;
constexpr std::int64_t kMaxPositions = ConfigKeys::kMost;

/// Keys that say nothing about a forward or its gradients: names, versions, tokens and defaults of generation.
constexpr const char* kHarmless =
    "_attn_implementation_autoset _name_or_path architectures attn_implementation bad_words_ids "
    "begin_suppress_tokens bos_token_id cache_implementation decoder_start_token_id diversity_penalty do_sample "
    "early_stopping "
    "encoder_no_repeat_ngram_size exponential_decay_length_penalty finetuning_task forced_bos_token_id "
    "forced_eos_token_id id2label is_llama_config label2id length_penalty max_length max_new_tokens min_length "
    "no_repeat_ngram_size num_beam_groups num_beams num_labels num_return_sequences output_attentions "
    "output_hidden_states output_router_logits output_scores prefix pretraining_tp problem_type "
    "remove_invalid_values repetition_penalty return_dict return_dict_in_generate sep_token_id suppress_tokens "
    "task_specific_params temperature tie_encoder_decoder tokenizer_class top_k top_p torchscript "
    "transformers.js_config transformers_version typical_p unsloth_fixed unsloth_version use_bfloat16 use_cache ";

const Family& family_of(ConfigKeys& keys) {
  const auto name = keys.text("model_type", "");
  if (const auto* family = find_family(name)) return *family;
  std::vector<std::string> names;
  for (const auto& family : families()) names.emplace_back(family.name);
  keys.refuse("model_type", c10::Join(", ", names), name.empty() ? "" : nearest_family(name));
}

/// One entry for each layer.
std::vector<std::int64_t> read_windows(ConfigKeys& keys, const Family& family, std::int64_t layers) {
  const auto count = static_cast<std::size_t>(layers);
  // Null means none; left out, it is the family's.
  auto window = keys.integer("sliding_window", 1, kMaxPositions, 0);
  if (!keys.has("sliding_window")) window = family.window;
  const bool by_key = family.windows == Family::EveryLayerIfUsed || family.windows == Family::SomeLayersIfUsed;
  if (by_key && !keys.flag("use_sliding_window", false)) window = 0;
  if (family.windows == Family::NoWindow && window > 0) keys.refuse("sliding_window", "none in this family");
  std::vector<std::int64_t> windows(count, window);
  if (family.windows == Family::EveryLayerIfUsed) keys.ignore("max_window_layers");  // transformers reads it for others
  if (family.windows == Family::SomeLayersIfUsed) {
    const auto whole = keys.integer("max_window_layers", 0, kMaxPositions, 28);
    std::fill_n(windows.begin(), std::min(whole, layers), 0);
  }
  if (family.windows == Family::LayersByType) {
    const auto every = family.full_every_key ? keys.integer(family.full_every_key, 1, kMaxPositions, family.full_every)
                                             : family.full_every;
    for (auto layer = every; layer <= layers; layer += every) windows[static_cast<std::size_t>(layer - 1)] = 0;
  }
  const auto* types = keys.find("layer_types");
  if (!types) return windows;
  if (!types->is_array() || types->size() != count) keys.refuse("layer_types", "one text for each layer");
  for (std::size_t i = 0; i < count; ++i) {
    const bool slides = (*types)[i] == "sliding_attention";
    if (!slides && (*types)[i] != "full_attention") keys.refuse("layer_types", "full_attention or sliding_attention");
    if (slides && window == 0) keys.refuse("layer_types", "full_attention only, since there is no sliding window");
    // Elsewhere transformers does not read it, so it must say what is done anyway.
    const bool by_type = family.windows == Family::SomeLayersIfUsed || family.windows == Family::LayersByType;
    if (!by_type && slides != (windows[i] > 0))
      keys.refuse("layer_types", "the same for all layers, as this family has it");
    windows[i] = slides ? window : 0;
  }
  return windows;
}

std::vector<std::int64_t> read_tokens(ConfigKeys& keys, const std::string& key) {
  const auto* value = keys.find(key);
  if (!value) return {};
  const auto list = value->is_array() ? *value : Json::array({*value});
  std::vector<std::int64_t> tokens;
  for (const auto& each : list) {
    if (!each.is_number_integer() || tokens.size() >= 1000) keys.refuse(key, "a token's number or a list of them");
    tokens.push_back(each.get<std::int64_t>());
  }
  return tokens;
}

void read_head_dim(ConfigKeys& keys, const Family& family, DecoderConfig& config) {
  const auto head_dim = family.head_dim > 0 ? family.head_dim : config.width / config.heads;
  if (family.head_dim == 0 && !keys.find("head_dim") && config.width % config.heads != 0)
    keys.refuse("hidden_size", "a multiple of num_attention_heads, or a head_dim");
  config.head_dim = keys.integer("head_dim", 2, 65536, head_dim);
  if (config.head_dim < 2 || config.head_dim % 2 != 0) keys.refuse("head_dim", "an even number");
}

c10::ScalarType read_dtype(ConfigKeys& keys) {
  const auto* key = keys.find("dtype") ? "dtype" : "torch_dtype";
  auto name = keys.text(key, "float32");
  keys.ignore("torch_dtype");
  if (name.starts_with("torch.")) name = name.substr(6);
  if (name == "float32") return c10::ScalarType::Float;
  if (name == "bfloat16") return c10::ScalarType::BFloat16;
  if (name == "float16") return c10::ScalarType::Half;
  keys.refuse(key, "float32, bfloat16 or float16");
}

/// Whether the folder's model scores sequences. `architectures` says so, the number of labels stands in `id2label`.
bool read_reward_head(ConfigKeys& keys) {
  const auto* names = keys.find("architectures");
  if (!names) return false;
  const auto name = names->is_array() && names->size() == 1 && (*names)[0].is_string() ? (*names)[0].get<std::string>()
                                                                                       : std::string();
  if (name.ends_with("ForCausalLM")) return false;
  if (!name.ends_with("ForSequenceClassification"))
    keys.refuse("architectures", "one name that ends with ForCausalLM or ForSequenceClassification");
  const auto* labels = keys.find("id2label");
  const auto count = keys.integer("num_labels", 1, kMaxPositions, labels ? labels->size() : 2);
  if (count != 1) keys.refuse(labels ? "id2label" : "num_labels", "one label, the score of a reward model");
  return true;
}

/// Keys that are harmless with the value that turns them off.
void check_off(ConfigKeys& keys) {
  for (const char* key : {"attention_dropout", "embd_pdrop", "resid_pdrop"}) {
    if (keys.number(key, 0, 1, 0.0) != 0) keys.refuse(key, "0", "set it to 0 to train without dropout");
  }
  for (const char* key : {"is_encoder_decoder", "add_cross_attention", "use_mrope", "rope_interleaved"}) {
    if (keys.flag(key, false)) keys.refuse(key, "false");
  }
  keys.ignore("is_decoder");  // these models do not read it
  if (keys.integer("chunk_size_feed_forward", 0, kMaxPositions, 0) != 0) keys.refuse("chunk_size_feed_forward", "0");
  for (const char* key : {"pruned_heads", "cross_attention_hidden_size"}) {
    const auto* value = keys.find(key);
    if (value && !value->empty()) keys.refuse(key, "nothing");
  }
}

void each_word(const char* words, const auto& visit) {
  std::istringstream all(words);
  for (std::string word; all >> word;) visit(word);
}

/// Whether quantization_config says that the files hold experts in MXFP4. What else it has, a program's choices, is
/// nothing here: they are read as numbers.
bool read_mxfp4(ConfigKeys& top, const DecoderConfig& config) {
  const auto* json = top.find("quantization_config");
  if (!json) return false;
  ConfigKeys keys(*json, top.where() + ", quantization_config");
  if (keys.text("quant_method", "") != "mxfp4")
    keys.refuse("quant_method", "mxfp4", "take the model's files in bfloat16 instead");
  for (const char* key : {"modules_to_not_convert", "dequantize"}) keys.ignore(key);
  keys.check_all_taken();
  constexpr std::int64_t kBlock = 32;
  if (config.width % kBlock != 0 || config.experts->width % kBlock != 0)
    top.refuse("quantization_config", "none, since hidden_size and intermediate_size are no multiples of 32");
  return true;
}

Activation read_activation(ConfigKeys& keys, const Family& family) {
  if (family.activation == Activation::GeluTanh) {
    if (keys.text("hidden_activation", "gelu_pytorch_tanh") != "gelu_pytorch_tanh")
      keys.refuse("hidden_activation", "gelu_pytorch_tanh");
  } else {
    const auto act = keys.text("hidden_act", "silu");
    if (act != "silu" && act != "swish") keys.refuse("hidden_act", "silu");
  }
  return family.activation;
}

/// Left out it is the family's, null none.
double read_cap(ConfigKeys& keys, const char* key, const std::optional<double>& of_family) {
  if (!of_family) return 0;
  return keys.number(key, 1e-3, 1e6, keys.has(key) ? 0.0 : *of_family);
}

void read_biases(ConfigKeys& keys, const Family& family, DecoderConfig& config) {
  const bool by_key = family.attention_bias == Family::BiasByKey,
             qkv_by_key = family.attention_bias == Family::QkvBiasByKey;
  const bool bias = (by_key || qkv_by_key) && keys.flag("attention_bias", family.biased);
  config.qkv_bias = bias || family.attention_bias == Family::QkvBias;
  config.out_bias = bias && by_key;
  config.mlp_bias = family.mlp_bias_by_key && keys.flag("mlp_bias", false);
}

/// What multiplies, divides or bounds numbers on their way.
void read_scales(ConfigKeys& keys, const Family& family, DecoderConfig& config) {
  if (family.clips_qkv) config.clip_qkv = keys.number("clip_qkv", 1e-6, 1e6, 0.0);
  if (family.multipliers) {
    config.embedding_scale = keys.number("embedding_multiplier", -1e6, 1e6, 1.0);
    config.attention_scale = keys.number("attention_multiplier", -1e6, 1e6, 1.0);
    config.residual_scale = keys.number("residual_multiplier", -1e6, 1e6, 1.0);
    config.logit_divisor = keys.number("logits_scaling", 1e-6, 1e6, 1.0);
  }
  if (family.scales_embedding) {
    config.embedding_scale = std::sqrt(static_cast<double>(config.width));
    config.rounds_embedding_scale = true;
  }
  if (family.query_scalar)
    config.attention_scale = 1 / std::sqrt(keys.number("query_pre_attn_scalar", 1e-3, 1e9, family.query_scalar));
  config.score_cap = read_cap(keys, "attn_logit_softcapping", family.score_cap);
  config.logit_cap = read_cap(keys, "final_logit_softcapping", family.logit_cap);
}

DecoderConfig read(ConfigKeys& keys) {
  const auto& family = family_of(keys);
  DecoderConfig config{.family = family.name};
  config.vocabulary = keys.integer("vocab_size", 1, 1 << 26);
  config.width = keys.integer("hidden_size", 1, 1 << 20);
  config.mlp_width = keys.integer("intermediate_size", 1, 1 << 22);
  config.layers = keys.integer("num_hidden_layers", 1, 4096);
  config.heads = keys.integer("num_attention_heads", 1, 65536);
  // Absent it is the family's, null as many as heads: transformers tells these apart.
  const auto kv_heads = keys.has("num_key_value_heads") || family.kv_heads == 0 ? config.heads : family.kv_heads;
  config.kv_heads = keys.integer("num_key_value_heads", 1, config.heads, kv_heads);
  if (config.heads % config.kv_heads != 0) keys.refuse("num_key_value_heads", "a divisor of num_attention_heads");
  family.latent ? read_latent(keys, config) : read_head_dim(keys, family, config);
  config.max_positions = keys.integer("max_position_embeddings", 1, kMaxPositions);
  config.norm_eps = family.norm_eps;
  if (family.norm != NormKind::Plain) config.norm_eps = keys.number("rms_norm_eps", 1e-12, 1, family.norm_eps);
  config.norm = family.norm;
  config.norms = family.norms;
  if (family.window_theta > 0) {
    std::tie(config.rope, config.window_rope) = read_ropes(keys, family, config.head_dim, config.max_positions);
  } else {
    config.rope = read_rope(keys, family, config.turned_dim(), config.max_positions);
  }
  if (family.latent) finish_latent(keys, config);
  if (family.chunks) read_chunks(keys, config);
  config.windows = family.chunks ? std::vector<std::int64_t>(static_cast<std::size_t>(config.layers), 0)
                                 : read_windows(keys, family, config.layers);
  read_biases(keys, family, config);
  const bool norms_by_key = family.qk_norm == Family::OfHeadsByKey;
  config.qk_norm = norms_by_key ? keys.flag("use_qk_norm", false) : family.qk_norm != Family::NoQkNorm;
  config.qk_norm_whole = family.qk_norm == Family::OfAll;
  config.fused_qkv = family.fused_qkv;
  config.fused_gate_up = family.fused_gate_up;
  config.activation = read_activation(keys, family);
  read_scales(keys, family, config);
  config.tied_head = keys.flag("tie_word_embeddings", family.tied_head);
  config.reward_head = read_reward_head(keys);
  if (config.reward_head && !family.reward)
    keys.refuse("architectures", "a name that ends with ForCausalLM, since transformers has no other of this family");
  if (family.experts != Family::NoExperts) config.experts = read_experts(keys, family, config.layers, config.mlp_width);
  if (family.chunks) config.mlp_width = keys.integer("intermediate_size_mlp", 1, 1 << 22, 16384);
  config.sinks = family.sinks;
  config.block = family.block;
  if (family.mxfp4) config.mxfp4 = read_mxfp4(keys, config);
  config.dtype = read_dtype(keys);
  // Such files say nothing of it, and what is beside the experts is bfloat16.
  if (config.mxfp4 && !keys.find("dtype") && !keys.find("torch_dtype")) config.dtype = c10::ScalarType::BFloat16;
  config.initializer_range = keys.number("initializer_range", 0, 1, 0.02);
  if (!keys.has("pad_token_id")) {
    config.padding_token = family.padding_token;
    if (config.padding_token.value_or(0) >= config.vocabulary)
      keys.refuse("pad_token_id", c10::str("null, or a token, since this family's is ", *config.padding_token));
  } else if (keys.find("pad_token_id")) {
    const auto token = keys.integer("pad_token_id", -config.vocabulary, config.vocabulary - 1);
    config.padding_token = token < 0 ? token + config.vocabulary : token;  // as torch.nn.Embedding takes it
  }
  config.end_tokens = read_tokens(keys, "eos_token_id");
  check_off(keys);
  each_word(family.off, [&](const std::string& key) {
    if (keys.flag(key, false)) keys.refuse(key, "false");
  });
  for (const char* words : {family.unread, kHarmless}) {
    each_word(words, [&](const std::string& key) { keys.ignore(key); });
  }
  keys.check_all_taken();
  return config;
}

}  // namespace

DecoderConfig parse_decoder_config(std::string_view text, const std::string& where) {
  const auto json = safetensors::parse_json(text, 16, where);
  ConfigKeys keys(json, where);
  return read(keys);
}

DecoderConfig read_decoder_config(const std::filesystem::path& model_folder) {
  const auto path = model_folder / "config.json";
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  TORCH_CHECK(!error, path.string(), " cannot be read: ", error.message(),
              "; give the folder of a model as Hugging Face lays it out");
  TORCH_CHECK(bytes <= kMaxBytes, path.string(), " has ", bytes, " bytes; expected at most ", kMaxBytes);
  std::ifstream file(path, std::ios::binary);
  std::string text(bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(bytes));
  TORCH_CHECK(file.gcount() == static_cast<std::streamsize>(bytes), path.string(), " cannot be read to its end");
  return parse_decoder_config(text, path.string());
}

}  // namespace sealift::trainer
