// SPDX-License-Identifier: Apache-2.0
// See latent_config.hpp.
#include "trainer/models/latent_config.hpp"

#include <cmath>

namespace sealift::trainer {
namespace {

constexpr std::int64_t kMost = 65536;

}  // namespace

void read_latent(ConfigKeys& keys, DecoderConfig& config) {
  LatentConfig latent;
  if (!keys.has("q_lora_rank") || keys.find("q_lora_rank"))
    latent.queries = keys.integer("q_lora_rank", 1, kMost, 1536);
  latent.keys = keys.integer("kv_lora_rank", 1, kMost, 512);
  latent.plain = keys.integer("qk_nope_head_dim", 1, kMost, 128);
  latent.turned = keys.integer("qk_rope_head_dim", 2, kMost, 64);
  if (latent.turned % 2 != 0) keys.refuse("qk_rope_head_dim", "an even number");
  latent.values = keys.integer("v_head_dim", 1, kMost, 128);
  if (config.kv_heads != config.heads)
    keys.refuse("num_key_value_heads", "as many as num_attention_heads, since all are made from one vector");
  keys.ignore("head_dim");  // transformers writes and overwrites both
  keys.ignore("qk_head_dim");
  config.head_dim = latent.plain + latent.turned;
  config.latent = latent;
}

void finish_latent(ConfigKeys& keys, DecoderConfig& config) {
  config.rope.by_neighbours = keys.flag("rope_interleave", !keys.has("rope_interleave"));
  config.attention_scale = 1 / std::sqrt(static_cast<double>(config.head_dim));
  if (config.rope.scaling == RopeScaling::None || config.rope.mscale_all_dim == 0 || config.rope.factor <= 1) return;
  const auto scale = 0.1 * config.rope.mscale_all_dim * std::log(config.rope.factor) + 1.0;
  *config.attention_scale *= scale * scale;
}

}  // namespace sealift::trainer
