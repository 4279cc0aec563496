// SPDX-License-Identifier: Apache-2.0
// config.json: what is read of each family, and that whatever could change the numbers unread is refused by name.
// That the read values mean what transformers means by them is models_peer_test.py's subject.
// Each refusal changes one key of a file that is read.
#include "trainer/models/decoder_config.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

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

TEST_CASE("what one of them takes is refused of the others, and out of its bounds") {
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
      {{{"model_type", "olmo2"}, {"sliding_window", 8}}, "sliding_window is 8"}};
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
      {{{"model_type", "gemma2"}}, "model_type is \"gemma2\""},
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
