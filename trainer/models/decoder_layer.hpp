// SPDX-License-Identifier: Apache-2.0
// One layer of a decoder: attention, then an MLP or experts, each with norms before or behind it and around a
// residual.
// The decoder holds it in `Shardable<Recomputed<…>>`, so it is what becomes a unit and what is run again in backward.
// Parameter names are Hugging Face's.
// Mirrored by trainer/plan/decoder_tape.cpp: change both.
#pragma once

#include "trainer/models/attention.hpp"
#include "trainer/models/feed_forward.hpp"

namespace sealift::trainer {

class DecoderLayerImpl : public torch::nn::Module {
 public:
  DecoderLayerImpl(const DecoderConfig& config, std::int64_t layer)
      : before_attention_(make_norm(config, config.norms.before_attention)),
        attention_(register_module("self_attn", make_attention(config, layer))),
        after_attention_(make_norm(config, config.norms.after_attention)),
        before_mlp_(make_norm(config, config.norms.before_mlp)),
        feed_forward_(register_module(feed_forward_name(config, layer), make_feed_forward(config, layer))),
        after_mlp_(make_norm(config, config.norms.after_mlp)),
        residual_scale_(config.residual_scale) {}

  /// [batch, time, width] -> the same, and what FeedForward says of its router.
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& input, const Surroundings& around) {
    const auto middle =
        add(input, normed(after_attention_, attention_->forward(normed(before_attention_, input), around)));
    const auto [change, routed] = feed_forward_->forward(normed(before_mlp_, middle), around.counted);
    return {add(middle, normed(after_mlp_, change)), routed};
  }

 private:
  /// Null where the family has none there.
  RmsNorm make_norm(const DecoderConfig& config, const char* name) {
    return name ? register_module(name, RmsNorm(config.width, config.norm_eps, config.norm)) : RmsNorm(nullptr);
  }
  static at::Tensor normed(RmsNorm& norm, const at::Tensor& input) { return norm ? norm(input) : input; }
  at::Tensor add(const at::Tensor& input, const at::Tensor& change) const {
    return residual_scale_ == 1 ? input + change : input + change * residual_scale_;
  }

  RmsNorm before_attention_;
  std::shared_ptr<AnyAttention> attention_;
  RmsNorm after_attention_, before_mlp_;
  std::shared_ptr<FeedForward> feed_forward_;
  RmsNorm after_mlp_;
  double residual_scale_;
};
TORCH_MODULE(DecoderLayer);

}  // namespace sealift::trainer
