// SPDX-License-Identifier: Apache-2.0
#include "trainer/models/attention.hpp"

#include "trainer/models/attention_choice.hpp"
#include "trainer/models/capped_attention.hpp"
#include "trainer/models/sinks.hpp"

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

Visibility::Visibility(const at::Tensor& segments, std::int64_t time, const RowShape& shape,
                       const at::Tensor& positions)
    : positions_(positions), time_(time) {
  if (!segments.defined() || shape.padded_behind) return;
  segments_ = segments;
  starts_ = shape.starts;
  longest_ = shape.longest;
}

const at::Tensor& Visibility::mask(Reach reach, const at::TensorOptions& options) const {
  auto& mask = masks_[{reach, options.dtype().toScalarType()}];
  if (mask.defined()) return mask;
  at::NoGradGuard no_grad;
  const auto places = at::arange(time_, at::TensorOptions(options.device()).dtype(at::kLong));
  const auto distance = places.unsqueeze(1) - places.unsqueeze(0);
  auto visible = distance >= 0;
  if (reach.window > 0) visible = visible & (distance < reach.window);
  visible = visible.unsqueeze(0).unsqueeze(0);
  if (segments_.defined()) visible = visible & (segments_.unsqueeze(2) == segments_.unsqueeze(1)).unsqueeze(1);
  if (reach.chunk > 0) {
    const auto chunks = (positions_.defined() ? positions_ : places.unsqueeze(0)).div(reach.chunk, "floor");
    visible = visible & (chunks.unsqueeze(2) == chunks.unsqueeze(1)).unsqueeze(1);
  }
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

at::Tensor attend_visible(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                          const Visibility& visibility, const Reach& reach, std::optional<double> scale) {
  const bool is_causal = visibility.is_causal(reach);
  if (!is_causal && reach.chunk == 0 && attends_by_length(queries, keys, values)) {
    return attend_by_length(queries, keys, values, visibility, reach.window, scale);
  }
  const auto mask = is_causal ? std::nullopt : std::optional(visibility.mask(reach, queries.options()));
  return attend_by_mask(queries, keys, values, mask, is_causal, scale);
}

AttentionImpl::AttentionImpl(const DecoderConfig& config, std::int64_t layer)
    : heads_(config.heads),
      kv_heads_(config.kv_heads),
      head_dim_(config.head_dim),
      mixing_(config, layer),
      norms_whole_(config.qk_norm_whole),
      clip_(config.clip_qkv),
      turns_(config.turns(layer)),
      turned_norm_eps_(config.turned_norm_eps) {
  const auto queries = heads_ * head_dim_, keys = kv_heads_ * head_dim_;
  if (config.fused_qkv) {
    qkv_proj_ = register_module("qkv_proj", Projection(config.width, queries + 2 * keys, config.qkv_bias));
  } else {
    q_proj_ = register_module("q_proj", Projection(config.width, queries, config.qkv_bias));
    k_proj_ = register_module("k_proj", Projection(config.width, keys, config.qkv_bias));
    v_proj_ = register_module("v_proj", Projection(config.width, keys, config.qkv_bias));
  }
  o_proj_ = register_module("o_proj", Projection(queries, config.width, config.out_bias));
  if (config.sinks) sinks_ = register_parameter("sinks", torch::empty({heads_}));
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
  const auto& rope = mixing_.window() > 0 && around.window_rope.cos.defined() ? around.window_rope : around.rope;
  if (turns_) std::tie(queries, keys) = rotate(queries, keys, rope);
  if (turns_ && turned_norm_eps_) {
    for (auto* each : {&queries, &keys}) *each = at::rms_norm(*each, {head_dim_}, {}, turned_norm_eps_);
  }
  if (!turns_ && around.temperature.defined()) queries = (queries * around.temperature).to(queries.scalar_type());
  return o_proj_(mixing_.mix(queries, keys, values, around, sinks_));
}

Mixing::Mixing(const DecoderConfig& config, std::int64_t layer)
    : layer_(layer), cap_(config.score_cap), scale_(config.attention_scale) {
  const auto at = static_cast<std::size_t>(layer);
  reach_ = {.window = config.windows.at(at), .chunk = config.chunks.empty() ? 0 : config.chunks.at(at)};
}

at::Tensor Mixing::mix(at::Tensor queries, at::Tensor keys, at::Tensor values, const Surroundings& around,
                       const at::Tensor& sinks) const {
  // Kernels take one width of all three; zeros change neither scores nor the answers that are kept.
  const auto width = values.size(3), widest = std::max(width, queries.size(3));
  for (auto* each : {&queries, &keys, &values}) {
    if (each->size(3) < widest) *each = at::constant_pad_nd(*each, {0, widest - each->size(3)}, 0);
  }
  auto mixed =
      around.cache ? attend_cached(queries, keys, values, around, sinks) : attend(queries, keys, values, around, sinks);
  if (width < widest) mixed = mixed.narrow(3, 0, width);
  return mixed.reshape({mixed.size(0), mixed.size(1), -1});
}

at::Tensor Mixing::attend(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                          const Surroundings& around, const at::Tensor& sinks) const {
  const auto& visibility = *around.visibility;
  if (cap_ > 0) return attend_capped(queries, keys, values, visibility.segments(), {reach_.window, scale_, cap_});
  if (sinks.defined()) {
    const bool is_causal = visibility.is_causal(reach_);
    const auto mask = is_causal ? std::nullopt : std::optional(visibility.mask(reach_, queries.options()));
    const auto wide = with_sinks(queries, keys, values, sinks, scale_);
    return without_sinks(attend_by_mask(wide.queries, wide.keys, wide.values, with_sinks(mask), is_causal, wide.scale),
                         queries);
  }
  return attend_visible(queries, keys, values, visibility, reach_, scale_);
}

at::Tensor Mixing::attend_cached(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                                 const Surroundings& around, const at::Tensor& sinks) const {
  auto& cache = *around.cache;
  const auto layer = static_cast<std::size_t>(layer_);
  append(cache.keys.at(layer), keys, cache);
  append(cache.values.at(layer), values, cache);
  if (cache.length == 0) return attend(queries, keys, values, around, sinks);
  const auto end = cache.length + 1;  // one token, which sees all that is in reach
  auto begin = reach_.window > 0 ? std::max<std::int64_t>(0, end - reach_.window) : 0;
  if (reach_.chunk > 0) begin = std::max(begin, cache.length / reach_.chunk * reach_.chunk);
  const auto seen = [&](const std::vector<at::Tensor>& cached) { return cached[layer].narrow(1, begin, end - begin); };
  if (cap_ > 0) return attend_capped(queries, seen(cache.keys), seen(cache.values), {}, {reach_.window, scale_, cap_});
  if (!sinks.defined())
    return attend_by_mask(queries, seen(cache.keys), seen(cache.values), {}, /*is_causal=*/false, scale_);
  const auto wide = with_sinks(queries, seen(cache.keys), seen(cache.values), sinks, scale_);
  return without_sinks(attend_by_mask(wide.queries, wide.keys, wide.values, {}, /*is_causal=*/false, wide.scale),
                       queries);
}

}  // namespace sealift::trainer
