// SPDX-License-Identifier: Apache-2.0
// config.json: what is read of each family, and that whatever could change the numbers unread is refused by name.
// That the read values mean what transformers means by them is models_peer_test.py's subject.
// Each refusal changes one key of a file that is read.
#include "trainer/models/decoder_config.hpp"
#include "tests/support/temp_dir.hpp"
#include "trainer/models/weight_files.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>

using namespace sealift::trainer;
using Json = nlohmann::json;

namespace {

Json llama() {
  return {{"model_type", "llama"},       {"vocab_size", 96},          {"hidden_size", 32},
          {"intermediate_size", 48},     {"num_hidden_layers", 4},    {"num_attention_heads", 4},
          {"num_key_value_heads", 2},    {"rms_norm_eps", 1e-5},      {"max_position_embeddings", 64},
          {"tie_word_embeddings", true}, {"torch_dtype", "bfloat16"}, {"architectures", {"LlamaForCausalLM"}}};
}

Json with(Json json, const Json& changes) {
  json.update(changes);
  return json;
}

DecoderConfig parse(const Json& json) {
  return parse_decoder_config(json.dump(), "config.json");
}

/// The message of the refusal of `json`; empty when it is read.
std::string refusal(const Json& json) {
  try {
    parse(json);
    return "";
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
}

}  // namespace

TEST_CASE("a llama's sizes are read, and what it leaves out is what transformers takes") {
  const auto config = parse(llama());
  CHECK(config.family == "llama");
  CHECK(config.vocabulary == 96);
  CHECK(config.width == 32);
  CHECK(config.mlp_width == 48);
  CHECK(config.layers == 4);
  CHECK(config.heads == 4);
  CHECK(config.kv_heads == 2);
  CHECK(config.head_dim == 8);
  CHECK(config.norm_eps == 1e-5);
  CHECK(config.tied_head);
  CHECK((config.dtype == c10::ScalarType::BFloat16));
  CHECK(config.rope.theta == 10000);
  CHECK(config.rope.scaling == RopeScaling::None);
  CHECK(config.windows == std::vector<std::int64_t>(4, 0));
  CHECK_FALSE(config.qkv_bias);
  CHECK_FALSE(config.padding_token);
  CHECK_FALSE(config.experts);
}

TEST_CASE("families differ in what they leave out") {
  const auto family = [](const char* name, const Json& changes) {
    auto json = with(llama(), changes.is_null() ? Json::object() : changes);
    json["model_type"] = name;
    return parse(json);
  };
  CHECK(family("mistral", {}).windows.front() == 4096);
  CHECK(family("mistral", {{"sliding_window", nullptr}}).windows.front() == 0);
  CHECK(family("mixtral", {{"num_local_experts", 4}}).rope.theta == 1e6);
  CHECK(family("qwen2", {}).qkv_bias);
  CHECK_FALSE(family("qwen2", {}).out_bias);
  CHECK(family("qwen2", {}).windows.front() == 0);
  CHECK(family("qwen3", {}).head_dim == 128);
  CHECK(family("qwen3", {}).qk_norm);
  const Json window{{"use_sliding_window", true}, {"sliding_window", 9}, {"max_window_layers", 3}};
  CHECK(family("qwen2", window).windows == std::vector<std::int64_t>{0, 0, 0, 9});
  CHECK(family("qwen3_moe", window).windows == std::vector<std::int64_t>(4, 9));
}

TEST_CASE("OLMo and Granite say in their own keys what they do otherwise") {
  auto olmo = with(llama(), {{"model_type", "olmo"}, {"clip_qkv", 8.0}});
  olmo.erase("rms_norm_eps");
  CHECK((parse(olmo).norm == NormKind::Plain));
  CHECK(parse(olmo).norm_eps == 1e-5);
  CHECK(parse(olmo).clip_qkv == 8);
  CHECK(parse(olmo).padding_token == 1);
  olmo["pad_token_id"] = nullptr;
  CHECK_FALSE(parse(olmo).padding_token);
  const auto olmo2 = parse(with(llama(), {{"model_type", "olmo2"}}));
  CHECK(olmo2.qk_norm);
  CHECK(olmo2.qk_norm_whole);
  CHECK(olmo2.norms.before_attention == nullptr);
  const auto olmo3 =
      parse(with(llama(), {{"model_type", "olmo3"}, {"rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}}}));
  CHECK(olmo3.windows == std::vector<std::int64_t>{4096, 4096, 4096, 0});
  CHECK(olmo3.rope.scaling == RopeScaling::Linear);
  REQUIRE(olmo3.window_rope);
  CHECK(olmo3.window_rope->scaling == RopeScaling::None);
  CHECK(olmo3.window_rope->theta == 500000);
  const auto granite = parse(with(llama(), {{"model_type", "granite"}, {"logits_scaling", 8.0}}));
  CHECK(granite.logit_divisor == 8);
  CHECK(granite.attention_scale == 1);
}

TEST_CASE("Phi-3 and GLM-4 say how much of a head turns, and how frequencies are stretched") {
  const Json factors{1.0, 1.5, 2.0};
  const Json longrope{{"type", "su"}, {"short_factor", factors}, {"long_factor", {2.0, 3.0, 4.0}}};
  const auto phi3 = parse(with(llama(), {{"model_type", "phi3"},
                                         {"pad_token_id", 0},
                                         {"partial_rotary_factor", 0.75},
                                         {"original_max_position_embeddings", 16},
                                         {"rope_scaling", longrope}}));
  CHECK(phi3.fused_qkv);
  CHECK(phi3.fused_gate_up);
  CHECK(phi3.rope.scaling == RopeScaling::Long);
  CHECK(phi3.rope.turned(phi3.head_dim) == 6);
  CHECK(phi3.rope.original_positions == 16);
  CHECK(phi3.rope.factor == 4);
  CHECK(phi3.rope.long_factors == std::vector<double>{2, 3, 4});
  CHECK(phi3.windows == std::vector<std::int64_t>(4, 0));
  const auto glm4 = parse(with(llama(), {{"model_type", "glm4"}, {"pad_token_id", 0}}));
  CHECK(glm4.head_dim == 128);
  CHECK(glm4.rope.turned(glm4.head_dim) == 64);
  CHECK(glm4.rope.by_neighbours);
  CHECK(glm4.qkv_bias);
  CHECK_FALSE(glm4.out_bias);
  CHECK(std::string(glm4.norms.after_attention) == "post_self_attn_layernorm");
}

TEST_CASE("Gemma 2 and 3 say their caps, scales and windows, and null is not what is left out") {
  const auto gemma2 = parse(with(llama(), {{"model_type", "gemma2"}, {"hidden_act", "gelu"}}));
  CHECK(gemma2.score_cap == 50);
  CHECK(gemma2.logit_cap == 30);
  CHECK(gemma2.attention_scale == 1.0 / 16);
  CHECK(gemma2.embedding_scale == std::sqrt(32.0));
  CHECK((gemma2.norm == NormKind::RmsOnePlus));
  CHECK(gemma2.windows == std::vector<std::int64_t>{4096, 0, 4096, 0});
  CHECK(gemma2.padding_token == 0);
  CHECK(parse(with(llama(), {{"model_type", "gemma2"}, {"attn_logit_softcapping", nullptr}})).score_cap == 0);
  auto untied = llama();
  untied.erase("tie_word_embeddings");
  CHECK(parse(with(untied, {{"model_type", "gemma2"}})).tied_head);
  const auto gemma3 = parse(with(llama(), {{"model_type", "gemma3_text"},
                                           {"sliding_window_pattern", 2},
                                           {"rope_local_base_freq", 500},
                                           {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8.0}}}}));
  CHECK(gemma3.windows == std::vector<std::int64_t>{4096, 0, 4096, 0});
  CHECK(gemma3.qk_norm);
  CHECK(gemma3.logit_cap == 0);
  CHECK(gemma3.rope.theta == 1e6);
  CHECK(gemma3.rope.scaling == RopeScaling::Linear);
  REQUIRE(gemma3.window_rope);
  CHECK(gemma3.window_rope->theta == 500);
}

TEST_CASE("what one of them takes is refused of the others, and out of its bounds") {
  const Json ones = Json(std::vector<double>(4, 1.0));
  const auto phi3 = [&](const Json& changes) { return with({{"model_type", "phi3"}, {"pad_token_id", 0}}, changes); };
  const auto longrope = [&](const Json& changes) {
    return phi3(
        {{"rope_scaling", with({{"type", "longrope"}, {"short_factor", ones}, {"long_factor", ones}}, changes)}});
  };
  const std::vector<std::pair<Json, std::string>> refused{
      {{{"model_type", "llama"}, {"clip_qkv", 8.0}}, "'clip_qkv'"},
      {{{"model_type", "llama"}, {"logits_scaling", 8.0}}, "'logits_scaling'"},
      {{{"model_type", "olmo"}, {"clip_qkv", -1.0}}, "clip_qkv is -1.0"},
      {{{"model_type", "olmo"}}, "'rms_norm_eps'"},
      {{{"model_type", "granite"}, {"logits_scaling", 0.0}}, "logits_scaling is 0.0"},
      {{{"model_type", "granite"}, {"architectures", {"GraniteForSequenceClassification"}}, {"num_labels", 1}},
       "architectures"},
      {{{"model_type", "olmo3"}, {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 1e4}}}}, "'rope_theta'"},
      {{{"model_type", "olmo3"}, {"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}}}}, "other than dynamic"},
      {{{"model_type", "olmo3"},
        {"sliding_window", nullptr},
        {"layer_types", Json(std::vector<std::string>(4, "sliding_attention"))}},
       "no sliding window"},
      {{{"model_type", "olmo2"}, {"sliding_window", 8}}, "sliding_window is 8"},
      {{{"model_type", "phi3"}}, "pad_token_id is missing; expected null, or a token, since this family's is 32000"},
      {phi3({{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}}), "expected default or longrope"},
      {phi3({{"partial_rotary_factor", 0.4}}), "partial_rotary_factor is 0.4; expected one by which an even number"},
      {phi3({{"partial_rotary_factor", 0.0}}), "partial_rotary_factor is 0.0"},
      {phi3({{"partial_rotary_factor", 1.5}}), "partial_rotary_factor is 1.5"},
      {phi3({{"original_max_position_embeddings", 1}}), "original_max_position_embeddings is 1"},
      {phi3({{"attention_bias", true}}), "attention_bias is true; expected false"},
      {phi3({{"lm_head_bias", true}}), "lm_head_bias is true; expected false"},
      {phi3({{"resid_pdrop", 0.1}}), "resid_pdrop is 0.1; expected 0; set it to 0"},
      {longrope({{"short_factor", Json(std::vector<double>(1 << 16, 1.0))}}), "expected a list of 4 numbers above 0"},
      {longrope({{"long_factor", {1.0, 1.0, 1.0}}}), "long_factor is [1.0,1.0,1.0]; expected a list of 4 numbers"},
      {longrope({{"long_factor", {1.0, 0.0, 1.0, 1.0}}}), "long_factor is [1.0,0.0,1.0,1.0]"},
      {longrope({{"long_factor", {1.0, "2", 1.0, 1.0}}}), "long_factor"},
      {longrope({{"long_factor", nullptr}}), "long_factor"},
      {longrope({{"attention_factor", -1.0}}), "attention_factor is -1.0"},
      {longrope({{"short_mscale", 1.2}}), "'short_mscale'"},
      {{{"model_type", "glm4"}, {"pad_token_id", 0}, {"head_dim", 10}}, "partial_rotary_factor is missing"},
      {{{"model_type", "olmo3"}, {"partial_rotary_factor", 0.5}}, "'partial_rotary_factor'"},
      {{{"model_type", "gemma2"}, {"attn_logit_softcapping", 0.0}}, "attn_logit_softcapping is 0.0"},
      {{{"model_type", "gemma2"}, {"final_logit_softcapping", -30.0}}, "final_logit_softcapping is -30.0"},
      {{{"model_type", "gemma2"}, {"query_pre_attn_scalar", 0}}, "query_pre_attn_scalar is 0"},
      {{{"model_type", "gemma2"}, {"hidden_activation", "gelu"}}, "hidden_activation is \"gelu\""},
      {{{"model_type", "gemma2"}, {"use_bidirectional_attention", true}}, "use_bidirectional_attention is true"},
      {{{"model_type", "gemma3_text"}, {"attn_logit_softcapping", 50.0}}, "'attn_logit_softcapping'"},
      {{{"model_type", "gemma3_text"}, {"sliding_window_pattern", 0}}, "sliding_window_pattern is 0"},
      {{{"model_type", "gemma3_text"}, {"rope_local_base_freq", 1}}, "rope_local_base_freq is 1"}};
  for (const auto& [changes, expected] : refused) {
    CAPTURE(changes.dump());
    CHECK(refusal(with(llama(), changes)).find(expected) != std::string::npos);
  }
}

TEST_CASE("the page of models has a row for each family") {
  std::ifstream file(SEALIFT_MODELS_PAGE);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const auto& family : families()) {
    CAPTURE(family.name);
    CHECK(page.find(c10::str("| `", family.name, "` | ", family.adds, " |")) != std::string::npos);
  }
}

TEST_CASE("a family that is not there is refused with the nearest and what differs") {
  const auto said = [](const char* name) { return refusal(with(llama(), {{"model_type", name}})); };
  CHECK(said("qwen3_next").find("the nearest is qwen3_moe, and most of its layers have linear attention") !=
        std::string::npos);
  CHECK(said("qwen3_next").find('\n') == std::string::npos);
  CHECK(said("olmo4").find("the nearest name is olmo") != std::string::npos);
  CHECK(said("zamba").find("nothing is known here") != std::string::npos);
  CHECK(said("zamba").find("expected llama, mistral,") != std::string::npos);
}

TEST_CASE("sparse layers are read: which they are, and of how many experts") {
  const auto qwen = parse(with(llama(), {{"model_type", "qwen3_moe"},
                                         {"num_experts", 8},
                                         {"num_experts_per_tok", 2},
                                         {"moe_intermediate_size", 24},
                                         {"norm_topk_prob", true},
                                         {"decoder_sparse_step", 2},
                                         {"mlp_only_layers", {3}}}));
  REQUIRE(qwen.experts);
  CHECK(qwen.experts->experts == 8);
  CHECK(qwen.experts->per_token == 2);
  CHECK(qwen.experts->width == 24);
  CHECK(qwen.experts->normalize);
  CHECK(qwen.experts->layers == std::vector<bool>{false, true, false, false});
  const auto mixtral = parse(with(llama(), {{"model_type", "mixtral"}, {"num_local_experts", 4}}));
  REQUIRE(mixtral.experts);
  CHECK(mixtral.experts->width == 48);
  CHECK(mixtral.experts->normalize);
  CHECK(mixtral.experts->mixtral_names);
  CHECK(mixtral.is_sparse(0));
}

TEST_CASE("a folder of a reward model is known by its architecture and its one label") {
  const Json reward{{"architectures", {"LlamaForSequenceClassification"}}, {"id2label", {{"0", "score"}}}};
  CHECK(parse(with(llama(), reward)).reward_head);
  CHECK(refusal(with(llama(), {{"architectures", {"LlamaForSequenceClassification"}}})).find("num_labels") !=
        std::string::npos);
}

TEST_CASE("what could change the numbers and is not supported is refused by name") {
  const std::vector<std::pair<Json, std::string>> refused{
      {{{"model_type", "gemma"}}, "model_type is \"gemma\""},
      {{{"quantization_config", {{"bits", 4}}}}, "'quantization_config'"},
      {{{"final_logit_softcapping", 30.0}}, "'final_logit_softcapping'"},
      {{{"attn_logit_softcapping", 50.0}}, "'attn_logit_softcapping'"},
      {{{"auto_map", {{"AutoModel", "modeling.Other"}}}}, "'auto_map'"},
      {{{"use_rope", false}}, "'use_rope'"},
      {{{"use_mrope", true}}, "use_mrope is true"},
      {{{"rope_interleaved", true}}, "rope_interleaved is true"},
      {{{"attention_dropout", 0.1}}, "attention_dropout is 0.1"},
      {{{"partial_rotary_factor", 0.5}}, "partial_rotary_factor is 0.5"},
      {{{"rope_parameters", {{"partial_rotary_factor", 0.5}}}}, "partial_rotary_factor is 0.5"},
      {{{"rope_scaling", {{"type", "longrope"}, {"factor", 2.0}}}}, "type is \"longrope\""},
      {{{"rope_scaling", {{"rope_type", "linear"}}}}, "factor is missing"},
      {{{"rope_scaling", {{"rope_type", "linear"}, {"factor", 0.5}}}}, "factor is 0.5"},
      {{{"rope_scaling", {{"rope_type", "default"}, {"mrope_section", {2, 1, 1}}}}}, "'mrope_section'"},
      {{{"hidden_act", "gelu"}}, "hidden_act is \"gelu\""},
      {{{"torch_dtype", "float8_e4m3fn"}}, "torch_dtype is \"float8_e4m3fn\""},
      {{{"sliding_window", 128}}, "sliding_window is 128"},
      {{{"layer_types", {"full_attention", "linear_attention", "full_attention", "full_attention"}}}, "layer_types"},
      {{{"layer_types", {"full_attention"}}}, "layer_types"},
      {{{"is_encoder_decoder", true}}, "is_encoder_decoder is true"},
      {{{"architectures", {"LlamaForTokenClassification"}}}, "architectures"}};
  for (const auto& [changes, expected] : refused) {
    CAPTURE(changes.dump());
    CHECK(refusal(with(llama(), changes)).find(expected) != std::string::npos);
  }
}

TEST_CASE("numbers are bounded before anything is made of them") {
  const std::vector<std::pair<Json, std::string>> refused{{{{"vocab_size", 0}}, "vocab_size"},
                                                          {{{"vocab_size", -5}}, "vocab_size"},
                                                          {{{"vocab_size", 1e9}}, "vocab_size"},
                                                          {{{"vocab_size", "96"}}, "vocab_size"},
                                                          {{{"vocab_size", 18446744073709551615u}}, "vocab_size"},
                                                          {{{"hidden_size", nullptr}}, "hidden_size"},
                                                          {{{"hidden_size", 30}}, "hidden_size"},
                                                          {{{"num_hidden_layers", 1 << 30}}, "num_hidden_layers"},
                                                          {{{"num_key_value_heads", 3}}, "num_key_value_heads"},
                                                          {{{"num_key_value_heads", 8}}, "num_key_value_heads"},
                                                          {{{"head_dim", 7}}, "head_dim"},
                                                          {{{"rms_norm_eps", 0}}, "rms_norm_eps"},
                                                          {{{"rope_theta", 1}}, "rope_theta"},
                                                          {{{"pad_token_id", 96}}, "pad_token_id"},
                                                          {{{"eos_token_id", {1.5}}}, "eos_token_id"},
                                                          {{{"tie_word_embeddings", 1}}, "tie_word_embeddings"}};
  for (const auto& [changes, expected] : refused) {
    CAPTURE(changes.dump());
    CHECK(refusal(with(llama(), changes)).find("config.json: " + expected) != std::string::npos);
  }
}

TEST_CASE("files as models are published with are read: Phi-4-mini, GLM-4, Gemma 2 and 3") {
  Json phi4 = Json::parse(R"({"architectures": ["Phi3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config", "AutoModelForCausalLM": "modeling_phi3.Phi3ForCausalLM"},
    "bos_token_id": 199999, "embd_pdrop": 0.0, "eos_token_id": 199999, "full_attn_mod": 1, "hidden_act": "silu",
    "hidden_size": 3072, "initializer_range": 0.02, "intermediate_size": 8192, "interpolate_factor": 1,
    "lm_head_bias": false, "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "phi3",
    "num_attention_heads": 24, "num_hidden_layers": 32, "num_key_value_heads": 8,
    "original_max_position_embeddings": 4096, "pad_token_id": 199999, "partial_rotary_factor": 0.75,
    "resid_pdrop": 0.0, "rms_norm_eps": 1e-05, "rope_scaling": {"type": "longrope"}, "rope_theta": 10000.0,
    "sliding_window": 262144, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
    "transformers_version": "4.45.0", "use_cache": true, "vocab_size": 200064})");
  for (const char* key : {"short_factor", "long_factor"}) phi4["rope_scaling"][key] = std::vector<double>(48, 1.0);
  const auto mini = parse(phi4);
  CHECK(mini.rope.turned(mini.head_dim) == 96);
  CHECK(mini.rope.factor == 32);
  const auto glm4 = parse_decoder_config(R"({"architectures": ["Glm4ForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "eos_token_id": [151329, 151336, 151338], "head_dim": 128, "hidden_act": "silu",
    "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 13696, "max_position_embeddings": 32768,
    "model_type": "glm4", "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 2,
    "pad_token_id": 151329, "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
    "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.52.0.dev0", "use_cache": true,
    "vocab_size": 151552})",
                                         "GLM-4-9B-0414");
  CHECK_FALSE(glm4.qkv_bias);
  const auto gemma2 = parse_decoder_config(R"({"architectures": ["Gemma2ForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "attn_logit_softcapping": 50.0, "bos_token_id": 2, "cache_implementation": "hybrid",
    "eos_token_id": 1, "final_logit_softcapping": 30.0, "head_dim": 128, "hidden_act": "gelu_pytorch_tanh",
    "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 4608, "initializer_range": 0.02,
    "intermediate_size": 36864, "max_position_embeddings": 8192, "model_type": "gemma2", "num_attention_heads": 32,
    "num_hidden_layers": 46, "num_key_value_heads": 16, "pad_token_id": 0, "query_pre_attn_scalar": 144,
    "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "sliding_window": 4096, "sliding_window_size": 4096,
    "torch_dtype": "float32", "transformers_version": "4.42.0.dev0", "use_cache": true, "vocab_size": 256000,
    "_attn_implementation": null})",
                                           "Gemma-2-27b");
  CHECK(gemma2.attention_scale == 1.0 / 12);
  CHECK(gemma2.tied_head);
  const auto gemma3 = parse_decoder_config(R"({"architectures": ["Gemma3ForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "attn_logit_softcapping": null, "bos_token_id": 2, "cache_implementation": "hybrid",
    "eos_token_id": [1, 106], "final_logit_softcapping": null, "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 1152, "initializer_range": 0.02,
    "intermediate_size": 6912, "max_position_embeddings": 32768, "model_type": "gemma3_text",
    "num_attention_heads": 4, "num_hidden_layers": 26, "num_key_value_heads": 1, "pad_token_id": 0,
    "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_local_base_freq": 10000, "rope_scaling": null,
    "rope_theta": 1000000, "sliding_window": 512, "sliding_window_pattern": 6, "torch_dtype": "bfloat16",
    "transformers_version": "4.50.0.dev0", "use_cache": true, "vocab_size": 262144})",
                                           "Gemma-3-1b");
  CHECK(std::count(gemma3.windows.begin(), gemma3.windows.end(), 0) == 4);
  CHECK(gemma3.window_rope->theta == 10000);
}

TEST_CASE("files as models are published with are read: Llama 3.1, Qwen2.5, Qwen3-MoE, Mixtral") {
  const auto llama31 = parse_decoder_config(R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009], "hidden_act": "silu",
    "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 131072,
    "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32,
    "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 8.0,
    "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"},
    "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.42.3",
    "use_cache": true, "vocab_size": 128256})",
                                            "Llama-3.1");
  CHECK(llama31.rope.scaling == RopeScaling::Llama3);
  CHECK(llama31.rope.theta == 500000);
  CHECK(llama31.rope.original_positions == 8192);
  CHECK(llama31.end_tokens == std::vector<std::int64_t>{128001, 128008, 128009});
  const auto qwen25 = parse_decoder_config(R"({"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0,
    "bos_token_id": 151643, "eos_token_id": 151643, "hidden_act": "silu", "hidden_size": 896, "initializer_range": 0.02,
    "intermediate_size": 4864, "max_position_embeddings": 32768, "max_window_layers": 24, "model_type": "qwen2",
    "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2, "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0, "sliding_window": 32768, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
    "transformers_version": "4.40.1", "use_cache": true, "use_mrope": false, "use_sliding_window": false,
    "vocab_size": 151936})",
                                           "Qwen2.5");
  CHECK(qwen25.head_dim == 64);
  CHECK(qwen25.windows.back() == 0);
  const auto qwen3_moe = parse_decoder_config(R"({"architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "bos_token_id": 151643, "decoder_sparse_step": 1, "eos_token_id": 151645, "head_dim": 128,
    "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 6144,
    "max_position_embeddings": 40960, "max_window_layers": 48, "mlp_only_layers": [], "model_type": "qwen3_moe",
    "moe_intermediate_size": 768, "norm_topk_prob": true, "num_attention_heads": 32, "num_experts": 128,
    "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4, "output_router_logits": false,
    "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001,
    "sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.0",
    "use_cache": true, "use_sliding_window": false, "vocab_size": 151936})",
                                              "Qwen3-MoE");
  CHECK(qwen3_moe.experts->experts == 128);
  CHECK(qwen3_moe.is_sparse(47));
  const auto mixtral = parse_decoder_config(R"({"architectures": ["MixtralForCausalLM"], "attention_dropout": 0.0,
    "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
    "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mixtral", "num_attention_heads": 32,
    "num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8,
    "output_router_logits": false, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.02,
    "sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
    "transformers_version": "4.36.0.dev0", "use_cache": true, "vocab_size": 32000})",
                                            "Mixtral");
  CHECK(mixtral.experts->loss_coefficient == 0.02);
}

TEST_CASE("what says nothing about a forward is passed over, and an unknown key that is null") {
  const Json harmless{
      {"transformers_version", "4.44.0"}, {"use_cache", true}, {"bos_token_id", 1}, {"new_key", nullptr}};
  CHECK(refusal(with(llama(), harmless)).empty());
}

TEST_CASE("a config.json that is missing, or is no strict JSON, is refused with its path") {
  const sealift::test::TempDir folder;
  CHECK_THROWS_WITH_AS(read_decoder_config(folder.path()), doctest::Contains("config.json cannot be read"), c10::Error);
  std::ofstream(folder.path() / "config.json") << R"({"model_type": "llama", "model_type": "qwen2"})";
  CHECK_THROWS_WITH(read_decoder_config(folder.path()), doctest::Contains("a key stands twice"));
}

TEST_CASE("a config.json or an index that is too large, or too deep, is refused before memory is taken for it") {
  const sealift::test::TempDir folder;
  const auto config = folder.path() / "config.json", index = folder.path() / "model.safetensors.index.json";
  const auto make = [](const std::filesystem::path& path, std::uintmax_t bytes) {
    std::ofstream(path) << "{";
    std::filesystem::resize_file(path, bytes);  // a hole: nothing is written
  };
  make(config, (4 << 20) + 1);
  CHECK_THROWS_WITH(read_decoder_config(folder.path()),
                    doctest::Contains("config.json has 4194305 bytes; expected at most 4194304"));
  make(index, (256 << 20) + 1);
  CHECK_THROWS_WITH(check_weights(folder.path(), parse(llama())),
                    doctest::Contains("index.json has 268435457 bytes; expected at most 268435456"));
  auto deep = llama();
  deep["rope_scaling"] = Json::parse(std::string(20, '[') + std::string(20, ']'));
  CHECK_THROWS_WITH(parse(deep), doctest::Contains("config.json: the JSON is not acceptable: it is nested deeper"));
  std::ofstream(index) << R"({"weight_map": )" << std::string(1000, '[') << std::string(1000, ']') << "}";
  CHECK_THROWS_WITH(check_weights(folder.path(), parse(llama())), doctest::Contains("index.json"));
}
