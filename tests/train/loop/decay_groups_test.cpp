// SPDX-License-Identifier: Apache-2.0
// What decays and what does not, by the names that Hugging Face's models and PEFT's adapters have, and LoRA+'s rates.
// fine_tune_test.py holds a whole job to the groups of transformers' Trainer.
#include "trainer/loop/decay_groups.hpp"

#include <doctest/doctest.h>

using namespace sealift;
using namespace sealift::trainer;

TEST_CASE("matrices, embeddings and adapters decay; biases and norms of every family do not") {
  for (const auto* name : {"model.embed_tokens.weight", "lm_head.weight", "model.layers.0.self_attn.q_proj.weight",
                           "model.layers.3.mlp.experts.7.down_proj.weight", "model.layers.0.mlp.gate.weight",
                           "model.layers.0.self_attn.q_proj.lora.lora_A.weight"}) {
    CAPTURE(name);
    CHECK(decays(name));
  }
  for (const auto* name :
       {"model.norm.weight", "model.layers.0.input_layernorm.weight", "model.layers.0.post_attention_layernorm.weight",
        "model.layers.0.self_attn.q_norm.weight", "model.layers.0.self_attn.q_proj.bias", "a.RMSNorm.weight"}) {
    CAPTURE(name);
    CHECK_FALSE(decays(name));
  }
}

TEST_CASE("every shard is in one group, with its own decay and its own part of the rate") {
  const auto shard = [] { return torch::zeros({2}).requires_grad_(); };
  const std::vector<train::NamedTensor> shards = {
      {"a.weight", shard()}, {"a.bias", shard()}, {"a.lora_A.weight", shard()}, {"a.lora_B.weight", shard()}};
  const OptimizerOptions options{.weight_decay = 0.25, .lora_b_ratio = 16};
  const auto groups = decay_groups(shards, options);
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].shards.size() == 2);
  auto optimizer = make_optimizer(groups, options, train::Moments::WithParameter);
  set_rate(optimizer, groups, options, 0.5);
  const auto group = [&](std::size_t i) -> const torch::optim::AdamWOptions& {
    return static_cast<torch::optim::AdamWOptions&>(optimizer.param_groups()[i].options());
  };
  CHECK(group(0).lr() == 0.5);
  CHECK(group(0).weight_decay() == 0.25);
  CHECK(group(1).weight_decay() == 0);
  CHECK(group(2).lr() == 8);
  CHECK(group(2).weight_decay() == 0.25);
  CHECK(decay_groups(shards, {}).size() == 2);
}
