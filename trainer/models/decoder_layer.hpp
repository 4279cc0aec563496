// SPDX-License-Identifier: Apache-2.0
// One layer of a decoder: attention, then an MLP or experts, each behind a norm and around a residual.
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
      : input_norm_(register_module("input_layernorm", RmsNorm(config.width, config.norm_eps))),
        attention_(register_module("self_attn", Attention(config, layer))),
        attention_norm_(register_module("post_attention_layernorm", RmsNorm(config.width, config.norm_eps))),
        feed_forward_(register_module(feed_forward_name(config, layer), make_feed_forward(config, layer))) {}

  /// [batch, time, width] -> the same, and what FeedForward says of its router.
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& input, const Surroundings& around) {
    const auto middle = input + attention_(input_norm_(input), around);
    const auto [change, routed] = feed_forward_->forward(attention_norm_(middle), around.counted);
    return {middle + change, routed};
  }

 private:
  RmsNorm input_norm_;
  Attention attention_;
  RmsNorm attention_norm_;
  std::shared_ptr<FeedForward> feed_forward_;
};
TORCH_MODULE(DecoderLayer);

}  // namespace sealift::trainer
