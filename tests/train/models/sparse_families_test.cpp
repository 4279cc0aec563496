// SPDX-License-Identifier: Apache-2.0
// The families with experts beside Qwen's and Mixtral's: what their config.json files leave out, what is refused of
// them, and the parts that only they have. That they compute what transformers does: sparse_families_peer_test.py.
#include "tests/support/temp_dir.hpp"
#include "trainer/models/decoder.hpp"
#include "trainer/models/moe.hpp"
#include "trainer/models/mxfp4.hpp"
#include "trainer/models/sinks.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include <cmath>

using namespace sealift::trainer;
using Json = nlohmann::json;

namespace {

Json with(const char* family, const Json& changes = Json::object()) {
  Json json{{"model_type", family},     {"vocab_size", 96},       {"hidden_size", 64},
            {"intermediate_size", 48},  {"num_hidden_layers", 4}, {"num_attention_heads", 4},
            {"num_key_value_heads", 4}, {"head_dim", 16},         {"max_position_embeddings", 64}};
  json.update(changes);
  return json;
}

DecoderConfig read(const Json& json) {
  return parse_decoder_config(json.dump(), "config.json");
}

/// The message of the refusal of `json`; empty when it is read.
std::string refused(const Json& json) {
  try {
    read(json);
    return "";
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
}

}  // namespace

TEST_CASE("DeepSeek V3 leaves out what transformers takes, and its files' own words change nothing") {
  const auto config = read(with("deepseek_v3"));
  REQUIRE(config.latent);
  CHECK(config.latent->queries == 1536);
  CHECK(config.latent->keys == 512);
  CHECK(config.head_dim == 192);
  CHECK(config.turned_dim() == 64);
  CHECK(config.rope.by_neighbours);
  REQUIRE(config.experts);
  CHECK(config.experts->experts == 256);
  CHECK(config.experts->groups == 8);
  CHECK(config.experts->groups_used == 4);
  CHECK(config.experts->scale == 2.5);
  CHECK(config.experts->layers == std::vector<bool>{false, false, false, true});
  const Json words{{"auto_map", Json::object({{"AutoModel", "modeling.Model"}})},
                   {"scoring_func", "sigmoid"},
                   {"topk_method", "noaux_tc"},
                   {"moe_layer_freq", 1},
                   {"ep_size", 1},
                   {"num_nextn_predict_layers", 1},
                   {"q_lora_rank", nullptr}};
  CHECK(read(with("deepseek_v3", words)).latent->queries == 0);
}

TEST_CASE("YaRN's mscale_all_dim scales DeepSeek's scores, squared") {
  const Json yarn{{"type", "yarn"},
                  {"factor", 40.0},
                  {"original_max_position_embeddings", 4096},
                  {"mscale_all_dim", 1.0},
                  {"mscale", 1.0}};
  const auto scaled = *read(with("deepseek_v3", {{"rope_scaling", yarn}})).attention_scale;
  const auto plain = *read(with("deepseek_v3")).attention_scale;
  const auto once = 0.1 * std::log(40.0) + 1;
  CHECK(scaled / plain == doctest::Approx(once * once));
}

TEST_CASE("GLM-4 MoE, gpt-oss and Llama 4 leave out what transformers takes") {
  const auto glm = read(with("glm4_moe"));
  CHECK(glm.rope.part == 0.5);
  CHECK_FALSE(glm.qk_norm);
  CHECK(read(with("glm4_moe", {{"use_qk_norm", true}, {"attention_bias", true}})).qk_norm);
  CHECK_FALSE(read(with("glm4_moe", {{"attention_bias", true}})).out_bias);
  const auto oss = read(with("gpt_oss"));
  CHECK(oss.qkv_bias);
  CHECK(oss.out_bias);
  CHECK(oss.sinks);
  CHECK(oss.rope.scaling == RopeScaling::Yarn);
  CHECK_FALSE(oss.rope.truncate);
  CHECK(oss.rope.theta == 150000);
  CHECK(oss.windows == std::vector<std::int64_t>{128, 0, 128, 0});
  CHECK(oss.experts->per_token == 4);
  const auto llama = read(with("llama4_text", {{"interleave_moe_layer_step", 2}}));
  CHECK(llama.chunks == std::vector<std::int64_t>{8192, 8192, 8192, 0});
  CHECK(llama.unturned == std::vector<bool>{false, false, false, true});
  CHECK(llama.experts->layers == std::vector<bool>{false, true, false, true});
  CHECK(llama.mlp_width == 16384);
  CHECK(llama.experts->width == 48);
  CHECK(llama.temperature->floor == 8192);
}

TEST_CASE("what these families cannot have is refused with its key") {
  const auto refuses = [](const char* family, const Json& changes, const std::string& expected) {
    CAPTURE(changes.dump());
    const auto message = refused(with(family, changes));
    CAPTURE(message);
    CHECK(message.find(expected) != std::string::npos);
  };
  refuses("deepseek_v3", {{"num_key_value_heads", 2}}, "num_key_value_heads is 2; expected as many");
  refuses("deepseek_v3", {{"qk_rope_head_dim", 7}}, "qk_rope_head_dim is 7; expected an even number");
  refuses("deepseek_v3", {{"kv_lora_rank", 1000000000}}, "kv_lora_rank");
  refuses("deepseek_v3", {{"n_group", 3}}, "n_group is 3; expected a divisor");
  refuses("deepseek_v3", {{"n_routed_experts", 8}, {"n_group", 8}}, "n_group is 8; expected a divisor");
  refuses("deepseek_v3", {{"n_routed_experts", 8}, {"n_group", 4}, {"topk_group", 1}, {"num_experts_per_tok", 3}},
          "num_experts_per_tok is 3; expected at most the 2 experts");
  refuses("deepseek_v3", {{"scoring_func", "softmax"}}, "scoring_func is \"softmax\"; expected sigmoid");
  refuses("deepseek_v3", {{"n_shared_experts", 100000}}, "n_shared_experts");
  refuses("deepseek_v3", {{"quantization_config", {{"quant_method", "fp8"}}}}, "quantization_config");
  refuses("llama", {{"auto_map", {{"AutoModel", "modeling.Model"}}}}, "auto_map");
  refuses("gpt_oss", {{"quantization_config", {{"quant_method", "fp8"}}}}, "quant_method is \"fp8\"; expected mxfp4");
  refuses("gpt_oss", {{"quantization_config", {{"quant_method", "mxfp4"}, {"other", 1}}}}, "'other'");
  refuses("gpt_oss", {{"quantization_config", {{"quant_method", "mxfp4"}}}}, "no multiples of 32");
  refuses("qwen3_moe", {{"quantization_config", {{"quant_method", "mxfp4"}}}}, "quantization_config");
  refuses("gpt_oss", {{"swiglu_limit", 0.0}}, "swiglu_limit is 0.0");
  refuses("llama4_text", {{"attention_chunk_size", nullptr}}, "attention_chunk_size");
  refuses("llama4_text", {{"no_rope_layers", {1, 0}}}, "no_rope_layers");
  refuses("llama4_text", {{"no_rope_layers", {1, 0, 2, 1}}}, "no_rope_layers");
  refuses("llama4_text", {{"layer_types", Json(std::vector<std::string>(4, "sliding_attention"))}}, "layer_types");
  refuses("llama4_text", {{"moe_layers", "all"}}, "moe_layers");
  refuses("llama4_text", {{"floor_scale", 0}}, "floor_scale is 0");
  refuses("qwen3_next", Json::object(), "the nearest is qwen3_moe");
}

TEST_CASE("MXFP4 is 4 bits a number, the low ones first, and a power of 2 for 32 of them") {
  auto blocks = torch::zeros({1, 2, 16}, at::kByte);
  blocks[0][0][0] = 0x21;   // 0.5, then 1
  blocks[0][1][15] = 0xF7;  // 6, then -6
  const auto scales = torch::tensor({127, 130}, at::kByte).view({1, 2});
  const auto numbers = decode_mxfp4(blocks, scales);
  REQUIRE(numbers.sizes() == at::IntArrayRef({64, 1}));
  CHECK(numbers[0].item<float>() == 0.5F);
  CHECK(numbers[1].item<float>() == 1.0F);
  CHECK(numbers[62].item<float>() == 48.0F);
  CHECK(numbers[63].item<float>() == -48.0F);
}

TEST_CASE("a sink takes its part of each query's softmax, by head, and gets its gradient") {
  const auto made = [](std::int64_t heads, double pace) {
    return at::arange(2 * 5 * heads * 6, at::kDouble).mul(pace).sin().view({2, 5, heads, 6}).requires_grad_();
  };
  const auto queries = made(4, 0.7), keys = made(2, 0.3), values = made(2, 1.1);
  const auto sinks = torch::tensor({0.5, -1.0, 2.0, 0.0}, at::kDouble).requires_grad_();
  const auto all = [](const at::Tensor& kv) { return kv.repeat_interleave(2, 2).transpose(1, 2); };
  const auto scores = at::matmul(queries.transpose(1, 2), all(keys).transpose(2, 3)) / std::sqrt(6.0) +
                      at::full({5, 5}, -INFINITY, at::kDouble).triu(1);
  const auto chances = at::cat({scores, sinks.view({1, 4, 1, 1}).expand({2, 4, 5, 1})}, -1).softmax(-1);
  const auto expected = at::matmul(chances.narrow(-1, 0, 5), all(values)).transpose(1, 2);
  const auto wide = with_sinks(queries, keys, values, sinks, {});
  const auto rows = [](const at::Tensor& tensor) { return tensor.transpose(1, 2); };
  const auto got =
      without_sinks(rows(at::scaled_dot_product_attention(rows(wide.queries), rows(wide.keys), rows(wide.values), {},
                                                          0.0, true, wide.scale, true)),
                    queries);
  CHECK(at::allclose(got, expected, 1e-10, 1e-12));
  const auto weights = at::arange(got.numel(), at::kDouble).cos().view(got.sizes());
  const auto ours = torch::autograd::grad({(got * weights).sum()}, {queries, keys, values, sinks});
  const auto theirs = torch::autograd::grad({(expected * weights).sum()}, {queries, keys, values, sinks});
  for (std::size_t i = 0; i < ours.size(); ++i) CHECK(at::allclose(ours[i], theirs[i], 1e-9, 1e-11));
}

TEST_CASE("a router's correction stays fp32 in a model of 16 bits, and only chooses") {
  DecoderConfig config = read(with("deepseek_v3", {{"hidden_size", 16},
                                                   {"num_hidden_layers", 1},
                                                   {"first_k_dense_replace", 0},
                                                   {"n_routed_experts", 4},
                                                   {"n_group", 1},
                                                   {"topk_group", 1},
                                                   {"num_experts_per_tok", 1},
                                                   {"norm_topk_prob", false},
                                                   {"routed_scaling_factor", 1.0},
                                                   {"moe_intermediate_size", 8}}));
  Router router(16, *config.experts);
  router->to(at::kBFloat16);
  CHECK((router->weight.scalar_type() == at::kBFloat16));
  CHECK((router->correction.scalar_type() == at::kFloat));
  router->to(at::kFloat);
  {
    at::NoGradGuard no_grad;
    router->weight.zero_();
    router->correction.copy_(torch::tensor({0.0F, 0.0F, 3.0F, 0.0F}));
  }
  const auto routes = router(torch::ones({2, 16}));
  CHECK(routes.experts.equal(torch::full({2, 1}, 2, at::kLong)));
  CHECK(at::allclose(routes.weights, torch::full({2, 1}, 0.5)));
  CHECK_FALSE(routes.probabilities.defined());
}

TEST_CASE("matrices by columns with biases are multiplied as by rows, with sums of gradients for each expert") {
  for (const std::int64_t out : {8, 7}) {  // ATen's kernel, and a product for each expert
    const auto x = torch::randn({6, 4}).requires_grad_(), weight = torch::randn({3, 4, out}).requires_grad_(),
               bias = torch::randn({3, out}).requires_grad_();
    const auto counts = torch::tensor({2, 0, 4}, at::kLong);
    const auto y = grouped_linear_by_columns(x, weight, bias, counts);
    const auto expected =
        at::cat({at::addmm(bias[0], x.narrow(0, 0, 2), weight[0]), at::addmm(bias[2], x.narrow(0, 2, 4), weight[2])});
    CHECK(at::allclose(y, expected, 1e-5, 1e-5));
    const auto factor = torch::randn_like(y);
    const auto ours = torch::autograd::grad({(y * factor).sum()}, {x, weight, bias});
    const auto theirs = torch::autograd::grad({(expected * factor).sum()}, {x, weight, bias});
    for (std::size_t i = 0; i < ours.size(); ++i) CHECK(at::allclose(ours[i], theirs[i], 1e-5, 1e-5));
  }
  CHECK_THROWS_WITH(grouped_linear_by_columns(torch::ones({2, 3}), torch::ones({1, 4, 4}), {}, torch::ones({1})),
                    doctest::Contains("expected [rows, in]"));
}
