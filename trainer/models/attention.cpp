// SPDX-License-Identifier: Apache-2.0
#include "trainer/models/attention.hpp"

#include "trainer/models/attention_choice.hpp"
#include "trainer/models/capped_attention.hpp"

#include <limits>

namespace sealift::trainer {
namespace {

/// Flash attention over all tokens of the batch as one row of sequences: no mask, no work between sequences.
/// queries [batch, time, heads, head_dim], keys and values with kv_heads -> like queries
at::Tensor attend_by_length(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                            const Visibility& visibility, std::int64_t window, std::optional<double> scale) {
  note_attention(AttentionWay::ByLengths);
  const auto starts = visibility.starts(queries.size(0), queries.device());
  const auto before = window > 0 ? std::optional(window - 1) : std::nullopt;
  const auto mixed = std::get<0>(at::_flash_attention_forward(
      queries.flatten(0, 1), keys.flatten(0, 1), values.flatten(0, 1), starts, starts, visibility.longest(),
      visibility.longest(), /*dropout_p=*/0.0, /*is_causal=*/true, /*return_debug_mask=*/false, scale, before,
      before ? std::optional<std::int64_t>(0) : std::nullopt));
  return mixed.view_as(queries);
}

/// By one kernel for all rows, as ATen chooses. queries [batch, time, heads, head_dim] -> like queries
at::Tensor attend_by_mask(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                          const std::optional<at::Tensor>& mask, bool is_causal, std::optional<double> scale) {
  return attend_rows(queries.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2), mask, is_causal, scale)
      .transpose(1, 2);
}

/// Writes the new tokens [batch, time, kv_heads, head_dim] behind those of the cache.
void append(at::Tensor& cached, const at::Tensor& fresh, const KeyValueCache& cache) {
  if (!cached.defined())
    cached = at::empty({fresh.size(0), cache.capacity, fresh.size(2), fresh.size(3)}, fresh.options());
  cached.narrow(1, cache.length, fresh.size(1)).copy_(fresh);
}

}  // namespace

Visibility::Visibility(const at::Tensor& segments, std::int64_t time, const RowShape& shape) : time_(time) {
  if (!segments.defined() || shape.padded_behind) return;
  segments_ = segments;
  starts_ = shape.starts;
  longest_ = shape.longest;
}

const at::Tensor& Visibility::mask(std::int64_t window, const at::TensorOptions& options) const {
  auto& mask = masks_[{window, options.dtype().toScalarType()}];
  if (mask.defined()) return mask;
  at::NoGradGuard no_grad;
  const auto places = at::arange(time_, at::TensorOptions(options.device()).dtype(at::kLong));
  const auto distance = places.unsqueeze(1) - places.unsqueeze(0);
  auto visible = distance >= 0;
  if (window > 0) visible = visible & (distance < window);  // a rehearsal has no logical_and
  visible = visible.unsqueeze(0).unsqueeze(0);
  if (segments_.defined()) visible = visible & (segments_.unsqueeze(2) == segments_.unsqueeze(1)).unsqueeze(1);
  mask =
      at::zeros(visible.sizes(), options).masked_fill_(visible.bitwise_not(), -std::numeric_limits<double>::infinity());
  return mask;
}

const at::Tensor& Visibility::starts(std::int64_t batch, at::Device device) const {
  if (starts_.defined()) return starts_;
  starts_ = at::arange(0, (batch + 1) * time_, time_, at::TensorOptions(device).dtype(at::kInt));
  longest_ = time_;
  return starts_;
}

AttentionImpl::AttentionImpl(const DecoderConfig& config, std::int64_t layer)
    : layer_(layer),
      heads_(config.heads),
      kv_heads_(config.kv_heads),
      head_dim_(config.head_dim),
      window_(config.windows.at(static_cast<std::size_t>(layer))),
      cap_(config.score_cap),
      norms_whole_(config.qk_norm_whole),
      scale_(config.attention_scale),
      clip_(config.clip_qkv) {
  const auto queries = heads_ * head_dim_, keys = kv_heads_ * head_dim_;
  if (config.fused_qkv) {
    qkv_proj_ = register_module("qkv_proj", Projection(config.width, queries + 2 * keys, config.qkv_bias));
  } else {
    q_proj_ = register_module("q_proj", Projection(config.width, queries, config.qkv_bias));
    k_proj_ = register_module("k_proj", Projection(config.width, keys, config.qkv_bias));
    v_proj_ = register_module("v_proj", Projection(config.width, keys, config.qkv_bias));
  }
  o_proj_ = register_module("o_proj", Projection(queries, config.width, config.out_bias));
  if (!config.qk_norm) return;
  q_norm_ = register_module("q_norm", RmsNorm(norms_whole_ ? queries : head_dim_, config.norm_eps, config.norm));
  k_norm_ = register_module("k_norm", RmsNorm(norms_whole_ ? keys : head_dim_, config.norm_eps, config.norm));
}

at::Tensor AttentionImpl::forward(const at::Tensor& input, const Surroundings& around) {
  const auto batch = input.size(0), time = input.size(1);
  const auto of_keys = kv_heads_ * head_dim_;
  auto projected = qkv_proj_ ? qkv_proj_(input).split_with_sizes({heads_ * head_dim_, of_keys, of_keys}, -1)
                             : project(input, {q_proj_, k_proj_, v_proj_}, /*together=*/q_norm_ || clip_ > 0 ? 0 : 2);
  if (clip_ > 0) {
    for (auto& each : projected) each = each.clamp(-clip_, clip_);
  }
  auto queries = projected[0], keys = projected[1];
  if (q_norm_ && norms_whole_) queries = q_norm_(queries), keys = k_norm_(keys);
  queries = queries.view({batch, time, heads_, head_dim_});
  keys = keys.view({batch, time, kv_heads_, head_dim_});
  const auto values = projected[2].view({batch, time, kv_heads_, head_dim_});
  if (q_norm_ && !norms_whole_) queries = q_norm_(queries), keys = k_norm_(keys);
  const auto& rope = window_ > 0 && around.window_rope.cos.defined() ? around.window_rope : around.rope;
  std::tie(queries, keys) = rotate(queries, keys, rope);
  const auto mixed =
      around.cache ? attend_cached(queries, keys, values, around) : attend(queries, keys, values, around);
  return o_proj_(mixed.reshape({batch, time, heads_ * head_dim_}));
}

at::Tensor AttentionImpl::attend(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                                 const Surroundings& around) const {
  const auto& visibility = *around.visibility;
  if (cap_ > 0) return attend_capped(queries, keys, values, visibility.segments(), {window_, scale_, cap_});
  if (visibility.is_causal(window_)) return attend_by_mask(queries, keys, values, {}, /*is_causal=*/true, scale_);
  if (attends_by_length(queries, keys, values)) {
    return attend_by_length(queries, keys, values, visibility, window_, scale_);
  }
  return attend_by_mask(queries, keys, values, visibility.mask(window_, queries.options()), /*is_causal=*/false,
                        scale_);
}

at::Tensor AttentionImpl::attend_cached(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                                        const Surroundings& around) const {
  auto& cache = *around.cache;
  const auto layer = static_cast<std::size_t>(layer_);
  append(cache.keys.at(layer), keys, cache);
  append(cache.values.at(layer), values, cache);
  if (cache.length == 0) return attend(queries, keys, values, around);
  const auto end = cache.length + 1;  // one token, which sees all that the window holds
  const auto begin = window_ > 0 ? std::max<std::int64_t>(0, end - window_) : 0;
  const auto seen = [&](const std::vector<at::Tensor>& cached) { return cached[layer].narrow(1, begin, end - begin); };
  if (cap_ > 0) return attend_capped(queries, seen(cache.keys), seen(cache.values), {}, {window_, scale_, cap_});
  return attend_by_mask(queries, seen(cache.keys), seen(cache.values), {}, /*is_causal=*/false, scale_);
}

}  // namespace sealift::trainer
