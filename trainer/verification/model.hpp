// SPDX-License-Identifier: Apache-2.0
// A small GPT: pre-norm blocks, learned positions, the output tied to the token embedding.
// The model of sealift-train. Plain LibTorch except for how blocks are held: in `Shardable`, so that they may become
// units, of `Recomputed`, so that they may be run again in backward.
// The tied embedding belongs to the root, so both of its uses lie in one unit.
#pragma once

#include "trainer/models/attention_choice.hpp"

#include <sealift/train.hpp>

namespace sealift::trainer {

struct GptShape {
  std::int64_t vocabulary = 61;
  std::int64_t context = 32;
  std::int64_t layers = 5;
  std::int64_t width = 128;
  std::int64_t heads = 4;
  bool recompute = false;  ///< run each block again in backward instead of keeping its activations
};

class BlockImpl : public torch::nn::Module {
 public:
  explicit BlockImpl(const GptShape& shape)
      : heads_(shape.heads),
        norm1_(register_module("norm1", torch::nn::LayerNorm(torch::nn::LayerNormOptions({shape.width})))),
        qkv_(register_module("qkv", torch::nn::Linear(shape.width, 3 * shape.width))),
        out_(register_module("out", torch::nn::Linear(shape.width, shape.width))),
        norm2_(register_module("norm2", torch::nn::LayerNorm(torch::nn::LayerNormOptions({shape.width})))),
        up_(register_module("up", torch::nn::Linear(shape.width, 4 * shape.width))),
        down_(register_module("down", torch::nn::Linear(4 * shape.width, shape.width))) {}

  /// [batch, time, width] -> the same
  at::Tensor forward(const at::Tensor& input) {
    const auto batch = input.size(0), time = input.size(1), width = input.size(2);
    // [3][batch, heads, time, width / heads]
    const auto qkv = qkv_(norm1_(input)).view({batch, time, 3, heads_, width / heads_}).permute({2, 0, 3, 1, 4});
    const auto mixed = attend_rows(qkv[0], qkv[1], qkv[2], {}, /*is_causal=*/true, {});
    const auto middle = input + out_(mixed.transpose(1, 2).reshape({batch, time, width}));
    return middle + down_(torch::gelu(up_(norm2_(middle))));
  }

 private:
  std::int64_t heads_;
  torch::nn::LayerNorm norm1_;
  torch::nn::Linear qkv_, out_;
  torch::nn::LayerNorm norm2_;
  torch::nn::Linear up_, down_;
};
TORCH_MODULE(Block);

class GptImpl : public torch::nn::Module {
 public:
  explicit GptImpl(const GptShape& shape)
      : tokens_(register_module("tokens", torch::nn::Embedding(shape.vocabulary, shape.width))),
        positions_(register_module("positions", torch::nn::Embedding(shape.context, shape.width))),
        norm_(torch::nn::LayerNormOptions({shape.width})) {
    TORCH_CHECK(shape.width % shape.heads == 0, "width ", shape.width, " does not divide into ", shape.heads, " heads");
    for (std::int64_t i = 0; i < shape.layers; ++i) {
      blocks_.push_back(
          register_module("block" + std::to_string(i), train::Shardable<train::Recomputed<Block>>(shape)));
      blocks_.back()->recomputes = shape.recompute;
    }
    register_module("norm", norm_);
    at::NoGradGuard no_grad;
    for (auto& item : named_parameters()) {
      if (item.value().dim() == 2) item.value().normal_(0.0, 0.02);
      if (item.value().dim() == 1 && item.key().ends_with("bias")) item.value().zero_();
    }
  }

  /// Token numbers [batch, time] -> logits [batch, time, vocabulary]
  at::Tensor forward(const at::Tensor& tokens) {
    auto hidden = tokens_(tokens) + positions_(torch::arange(tokens.size(1), tokens.options()));
    for (auto& block : blocks_) hidden = block(hidden);
    return torch::linear(norm_(hidden), tokens_->weight);
  }

 private:
  torch::nn::Embedding tokens_, positions_;
  std::vector<train::Shardable<train::Recomputed<Block>>> blocks_;
  torch::nn::LayerNorm norm_;
};
TORCH_MODULE(Gpt);

}  // namespace sealift::trainer
