// SPDX-License-Identifier: Apache-2.0
// A Llama decoder of plain ATen operations: RMSNorm, rotary positions, grouped-query attention, SwiGLU.
// A model of training.cpp; training_peer.py has the same one in Python. Its blocks are held in `Shardable`.
// No kernels of our own, so that a comparison with Python on the same LibTorch measures what surrounds the kernels.
#pragma once

#include <sealift/train.hpp>

#include <cmath>

namespace sealift::bench {

struct LlamaShape {
  std::int64_t vocabulary, context, layers, width, heads, key_heads, inner;
  std::int64_t rows;  ///< sequences of a micro-batch on one rank

  std::int64_t head_width() const { return width / heads; }
};

/// TinyLlama's: 1,100,048,384 parameters. 4096 tokens per micro-batch, so that both sides of a comparison fit into 80
/// GB.
inline constexpr LlamaShape kLlama1B{32000, 2048, 22, 2048, 32, 4, 5632, /*rows=*/2};

/// The same in small, to try a run on a CPU: 204,224 parameters.
inline constexpr LlamaShape kLlamaTiny{512, 32, 3, 64, 4, 2, 176, /*rows=*/2};

class RmsNormImpl : public torch::nn::Module {
 public:
  explicit RmsNormImpl(std::int64_t width) : weight_(register_parameter("weight", torch::ones({width}))) {}
  at::Tensor forward(const at::Tensor& x) { return at::rms_norm(x, weight_.sizes(), weight_, 1e-5); }

 private:
  at::Tensor weight_;
};
TORCH_MODULE(RmsNorm);

inline torch::nn::Linear linear(std::int64_t inputs, std::int64_t outputs) {
  return torch::nn::Linear(torch::nn::LinearOptions(inputs, outputs).bias(false));
}

class LlamaBlockImpl : public torch::nn::Module {
 public:
  explicit LlamaBlockImpl(const LlamaShape& shape)
      : shape_(shape),
        norm1_(register_module("norm1", RmsNorm(shape.width))),
        query_(register_module("query", linear(shape.width, shape.width))),
        key_(register_module("key", linear(shape.width, shape.key_heads * shape.head_width()))),
        value_(register_module("value", linear(shape.width, shape.key_heads * shape.head_width()))),
        out_(register_module("out", linear(shape.width, shape.width))),
        norm2_(register_module("norm2", RmsNorm(shape.width))),
        gate_(register_module("gate", linear(shape.width, shape.inner))),
        up_(register_module("up", linear(shape.width, shape.inner))),
        down_(register_module("down", linear(shape.inner, shape.width))) {}

  /// [rows, time, width] -> the same; `cosines` and `sines`: [time, head width], in x's dtype.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& cosines, const at::Tensor& sines) {
    const auto rows = x.size(0), time = x.size(1);
    const auto normed = norm1_(x);
    const auto heads = [&](const at::Tensor& y) {  // [rows, heads, time, head width]
      return y.view({rows, time, -1, shape_.head_width()}).transpose(1, 2);
    };
    const auto turn = [&](const at::Tensor& y) {
      const auto halves = y.chunk(2, -1);
      return y * cosines + at::cat({-halves[1], halves[0]}, -1) * sines;
    };
    const auto mixed = at::scaled_dot_product_attention(turn(heads(query_(normed))), turn(heads(key_(normed))),
                                                        heads(value_(normed)), {}, 0.0, /*is_causal=*/true,
                                                        /*scale=*/std::nullopt, /*enable_gqa=*/true);
    const auto middle = x + out_(mixed.transpose(1, 2).reshape({rows, time, shape_.width}));
    const auto again = norm2_(middle);
    return middle + down_(at::silu(gate_(again)) * up_(again));
  }

 private:
  LlamaShape shape_;
  RmsNorm norm1_;
  torch::nn::Linear query_, key_, value_, out_;
  RmsNorm norm2_;
  torch::nn::Linear gate_, up_, down_;
};
TORCH_MODULE(LlamaBlock);

class LlamaImpl : public torch::nn::Module {
 public:
  explicit LlamaImpl(const LlamaShape& shape)
      : shape_(shape), tokens_(register_module("tokens", torch::nn::Embedding(shape.vocabulary, shape.width))) {
    for (std::int64_t i = 0; i < shape.layers; ++i) {
      blocks_.push_back(register_module("block" + std::to_string(i), train::Shardable<LlamaBlock>(shape)));
    }
    norm_ = register_module("norm", RmsNorm(shape.width));
    head_ = register_module("head", linear(shape.width, shape.vocabulary));
    const auto half = shape.head_width() / 2;
    const auto rates = torch::pow(10000.0, -torch::arange(half, torch::kFloat64) / double(half));
    const auto angles = torch::arange(shape.context, torch::kFloat64).unsqueeze(1) * rates;
    const auto both = at::cat({angles, angles}, -1).to(torch::kFloat32);
    cosines_ = register_buffer("cosines", both.cos());
    sines_ = register_buffer("sines", both.sin());
  }

  /// Token numbers [rows, time] -> logits [rows, time, vocabulary]
  at::Tensor forward(const at::Tensor& tokens) {
    auto x = tokens_(tokens);
    const auto cosines = cosines_.to(x.dtype()), sines = sines_.to(x.dtype());
    for (auto& block : blocks_) x = block(x, cosines, sines);
    return head_(norm_(x));
  }

  const LlamaShape& shape() const { return shape_; }

 private:
  LlamaShape shape_;
  torch::nn::Embedding tokens_;
  std::vector<train::Shardable<LlamaBlock>> blocks_;
  RmsNorm norm_{nullptr};
  torch::nn::Linear head_{nullptr};
  at::Tensor cosines_, sines_;
};
TORCH_MODULE(Llama);

/// Floating-point operations of one token's forward and backward, by the PaLM paper (appendix B): 6 for each weight of
/// a matrix product, 12 x layers x width x context for attention. The embedding is a look-up and not counted.
inline double flops_per_token(const LlamaShape& shape) {
  const auto kv = shape.key_heads * shape.head_width();
  const auto block = 2 * shape.width * shape.width + 2 * shape.width * kv + 3 * shape.width * shape.inner;
  const auto products = shape.layers * block + shape.vocabulary * shape.width;
  return 6.0 * double(products) + 12.0 * double(shape.layers * shape.width * shape.context);
}

}  // namespace sealift::bench
