// SPDX-License-Identifier: Apache-2.0
// Multi-head latent attention (DeepSeek): keys and values of all heads come from one short vector a token, queries from
// another or from the input; a part of each head turns, the keys' part being one for all heads.
// In place of grouped-query attention where the config has a `latent`; mixing is attention.hpp's.
// Keys and values are cached as heads, not as the short vector: generation here draws a few samples.
// Mirrored by trainer/plan/decoder_tape.cpp: change both.
#pragma once

#include "trainer/models/attention.hpp"

namespace sealift::trainer {

class LatentAttentionImpl final : public AnyAttention {
 public:
  LatentAttentionImpl(const DecoderConfig& config, std::int64_t layer);

  at::Tensor forward(const at::Tensor& input, const Surroundings& around) override;

 private:
  std::int64_t heads_;
  LatentConfig sizes_;
  Mixing mixing_;
  Projection q_proj_{nullptr};                        ///< without a latent of queries
  Projection q_a_proj_{nullptr}, q_b_proj_{nullptr};  ///< with one
  RmsNorm q_a_layernorm_{nullptr};
  Projection kv_a_proj_{nullptr}, kv_b_proj_{nullptr}, o_proj_{nullptr};
  RmsNorm kv_a_layernorm_{nullptr};
};
TORCH_MODULE(LatentAttention);

}  // namespace sealift::trainer
