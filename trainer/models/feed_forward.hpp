// SPDX-License-Identifier: Apache-2.0
// What follows attention in a layer: the gated MLP, and the face that it shares with experts.
// `make_feed_forward` chooses by the config; the layer knows the face only.
// Activation and product are one autograd function, so that backward keeps its two inputs and nothing else.
// Mirrored by trainer/plan/decoder_tape.cpp: change both.
#pragma once

#include "trainer/models/decoder_config.hpp"
#include "trainer/models/projection.hpp"

namespace sealift::trainer {

/// silu(gate) * up, of one shape; or another activation of the gate.
at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up);
at::Tensor gated(const at::Tensor& gate, const at::Tensor& up, Activation activation);

class FeedForward : public torch::nn::Module {
 public:
  /// [batch, time, width] -> the same; and from experts, fp32 [2, experts], summed over the tokens of `counted`
  /// ([batch, time] bool; undefined: all): row 0 how many of a token's choices fell on each expert, without a gradient,
  /// row 1 the probabilities that the router gave it. Undefined from an MLP. The sum over layers makes the router's
  /// loss.
  virtual std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& input, const at::Tensor& counted) = 0;
};

class MlpImpl final : public FeedForward {
 public:
  /// Of the config's family, with a hidden layer of `hidden`.
  MlpImpl(const DecoderConfig& config, std::int64_t hidden) : activation_(config.activation) {
    const auto width = config.width;
    const bool bias = config.mlp_bias;
    if (config.fused_gate_up) {
      gate_up_proj_ = register_module("gate_up_proj", Projection(width, 2 * hidden, bias));
    } else {
      gate_proj_ = register_module("gate_proj", Projection(width, hidden, bias));
      up_proj_ = register_module("up_proj", Projection(width, hidden, bias));
    }
    down_proj_ = register_module("down_proj", Projection(hidden, width, bias));
  }

  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& input, const at::Tensor& /*counted*/) override {
    const auto both = gate_up_proj_ ? gate_up_proj_(input).chunk(2, -1) : project(input, {gate_proj_, up_proj_});
    return {down_proj_(gated(both[0], both[1], activation_)), at::Tensor()};
  }

 private:
  Projection gate_proj_{nullptr}, up_proj_{nullptr}, down_proj_{nullptr};
  Projection gate_up_proj_{nullptr};  ///< in place of the first two
  Activation activation_;
};

/// The feed-forward of layer `layer`.
std::shared_ptr<FeedForward> make_feed_forward(const DecoderConfig& config, std::int64_t layer);

/// Its name in the layer, as Hugging Face's files have it.
inline const char* feed_forward_name(const DecoderConfig& config, std::int64_t layer) {
  return config.is_sparse(layer) && config.experts->mixtral_names ? "block_sparse_moe" : config.block;
}

}  // namespace sealift::trainer
