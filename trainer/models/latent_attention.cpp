// SPDX-License-Identifier: Apache-2.0
#include "trainer/models/latent_attention.hpp"

namespace sealift::trainer {
namespace {

constexpr double kEps = 1e-6;  // of the latents' norms, whatever rms_norm_eps says, as in transformers

}  // namespace

LatentAttentionImpl::LatentAttentionImpl(const DecoderConfig& config, std::int64_t layer)
    : heads_(config.heads), sizes_(*config.latent), mixing_(config, layer) {
  const auto queries = heads_ * (sizes_.plain + sizes_.turned), latent = sizes_.queries;
  if (latent == 0) {
    q_proj_ = register_module("q_proj", Projection(config.width, queries, false));
  } else {
    q_a_proj_ = register_module("q_a_proj", Projection(config.width, latent, config.qkv_bias));
    q_a_layernorm_ = register_module("q_a_layernorm", RmsNorm(latent, kEps));
    q_b_proj_ = register_module("q_b_proj", Projection(latent, queries, false));
  }
  const auto keys = sizes_.keys + sizes_.turned;
  kv_a_proj_ = register_module("kv_a_proj_with_mqa", Projection(config.width, keys, config.qkv_bias));
  kv_a_layernorm_ = register_module("kv_a_layernorm", RmsNorm(sizes_.keys, kEps));
  kv_b_proj_ = register_module("kv_b_proj", Projection(sizes_.keys, heads_ * (sizes_.plain + sizes_.values), false));
  o_proj_ = register_module("o_proj", Projection(heads_ * sizes_.values, config.width, config.out_bias));
}

at::Tensor LatentAttentionImpl::forward(const at::Tensor& input, const Surroundings& around) {
  const auto batch = input.size(0), time = input.size(1);
  const auto first = project(input, {q_proj_ ? q_proj_ : q_a_proj_, kv_a_proj_});
  const auto flat = q_proj_ ? first[0] : q_b_proj_(q_a_layernorm_(first[0]));
  const auto queries = flat.view({batch, time, heads_, -1}).split_with_sizes({sizes_.plain, sizes_.turned}, -1);
  const auto latent = first[1].split_with_sizes({sizes_.keys, sizes_.turned}, -1);
  const auto expanded = kv_b_proj_(kv_a_layernorm_(latent[0])).view({batch, time, heads_, -1});
  const auto parts = expanded.split_with_sizes({sizes_.plain, sizes_.values}, -1);
  const auto [turned_q, turned_k] = rotate(queries[1], latent[1].unsqueeze(2), around.rope);
  const auto shared = turned_k.expand({batch, time, heads_, sizes_.turned});
  const auto mixed =
      mixing_.mix(at::cat({queries[0], turned_q}, -1), at::cat({parts[0], shared}, -1), parts[1], around);
  return o_proj_(mixed);
}

}  // namespace sealift::trainer
