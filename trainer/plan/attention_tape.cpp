// SPDX-License-Identifier: Apache-2.0
// Latent attention, sinks and masks on the tape: models/latent_attention.cpp, models/sinks.hpp and attention.hpp's
// Visibility, line by line.
#include "trainer/plan/decoder_tape.hpp"

#include <algorithm>

namespace sealift::trainer::plan {
namespace {

constexpr std::int64_t kSinkWidth = 8;  // models/sinks.hpp

}  // namespace

using Id = Tape::Id;

Id DecoderTape::made_of(const std::vector<Id>& from, std::int64_t bytes) {
  const auto y = t_->make(bytes);
  t_->node([=, this] {
    for (const auto id : from) t_->give(id, t_->bytes(id));
    t_->free_gradient(y);
  });
  return y;
}

std::int64_t DecoderTape::rows_of_mask(std::int64_t number) const {
  return batch_.packed || shape_->decoder.chunk(number) > 0 ? batch_.rows : 1;
}

bool has_mask(const DecoderShape& shape, const Batch& batch, std::int64_t number) {
  const auto window = shape.window(number), chunk = shape.chunk(number);
  const bool is_causal =
      !batch.packed && (window == 0 || window >= batch.length) && (chunk == 0 || chunk >= batch.length);
  if (is_causal || shape.caps_scores) return false;
  // Elsewhere than on a host sequences of different lengths need none, where neither chunks nor sinks are.
  return batch.kernels == Kernels::Host || shape.sinks || chunk > 0;
}

std::optional<Id> DecoderTape::mask(std::int64_t number) {
  const auto& d = shape_->decoder;
  if (!has_mask(d, batch_, number)) return {};
  const auto length = batch_.length;
  const auto [place, is_new] = masks_.try_emplace({d.window(number), d.chunk(number)}, 0);
  if (!is_new) return place->second;
  const auto square = length * length, all = rows_of_mask(number) * square;
  place->second = t_->make(has_masks ? 0 : of(all));
  if (!has_masks) t_->meter().touch(Part::Activations, 8 * square + 2 * all);  // distances, and what is seen
  return place->second;
}

void DecoderTape::drop_masks() {
  for (const auto& each : masks_) t_->drop(each.second);
  masks_.clear();
}

Id DecoderTape::latent_attention(Id y, std::int64_t number, bool needs) {
  const auto& d = shape_->decoder;
  const auto tokens = batch_.tokens(), head = d.latent_plain + d.latent_turned;
  const bool has_latent = d.latent_queries > 0;
  const Linear of_queries{d.width, has_latent ? d.latent_queries : d.heads * head, has_latent && d.qkv_bias};
  const auto first = project(y, {of_queries, {d.width, d.latent_keys + d.latent_turned, d.qkv_bias}}, tokens, needs);
  auto queries = first[0];
  if (has_latent) {
    const auto normal = norm(first[0], tokens, d.latent_queries, true);
    queries = linear(normal, {d.latent_queries, d.heads * head, false}, tokens, true);
    t_->drop(normal);
  }
  const auto of_latent = norm(first[1], tokens, d.latent_keys, true);
  const auto expanded =
      linear(of_latent, {d.latent_keys, d.heads * (d.latent_plain + d.latent_values), false}, tokens, true);
  t_->drop(of_latent);
  const auto turned_q = made_of({queries}, of(tokens * d.heads * d.latent_turned));
  const auto turned_k = made_of({first[1]}, of(tokens * d.latent_turned));
  const auto wide = of(tokens * d.heads * head);
  const auto q = made_of({queries, turned_q}, wide), k = made_of({expanded, turned_k}, wide);
  const auto v = d.latent_values == head ? expanded : made_of({expanded}, wide);
  auto mixed = attend(q, k, v, number, std::nullopt);
  if (d.latent_values != head) {
    const auto narrow = made_of({mixed}, of(tokens * d.heads * d.latent_values));
    t_->drop(mixed);
    mixed = narrow;
  }
  for (const auto id : {q, k}) t_->drop(id);
  if (v != expanded) t_->drop(v);
  const auto out = linear(mixed, {d.heads * d.latent_values, d.width, d.out_bias}, tokens, true);
  for (const auto id : {mixed, turned_q, turned_k, expanded, queries, first[1]}) t_->drop(id);
  if (has_latent) t_->drop(first[0]);
  return out;
}

Id DecoderTape::attend_to_sinks(Id q, Id k, Id v, std::int64_t number) {
  const auto& d = shape_->decoder;
  const auto rows = batch_.tokens() + batch_.rows, width = d.head_dim + kSinkWidth;
  const auto of_q = of(rows * d.heads * width), of_k = of(rows * d.kv_heads * width);
  t_->meter().touch(Part::Activations, of_q);  // with one element more, before it is wide
  const auto wide_q = made_of({q}, of_q), wide_k = made_of({k}, of_k), wide_v = made_of({v}, of_k);
  const auto sums = t_->make(4 * rows * d.heads), mixed = t_->make(of_q);
  const auto longer = batch_.length + 1;
  const auto seen = t_->make(mask(number) ? of(rows_of_mask(number) * longer * longer) : 0);  // the layer's own
  for (const auto id : {wide_q, wide_k, wide_v, mixed, sums, seen}) t_->save(id);
  t_->node([=, this] {
    const auto cuda = on_host() ? 0 : of_q / batch_.compute_bytes * 4 + 2 * of_q;
    t_->give(wide_q, of_q, 2 * of_k + cuda);
    t_->give(wide_k, of_k);
    t_->give(wide_v, of_k);
    for (const auto id : {wide_q, wide_k, wide_v, mixed, sums, seen}) t_->free_saved(id);
    t_->free_gradient(mixed);
    if (!adapts()) t_->parameter(d.heads);
  });
  const auto out = made_of({mixed}, of(batch_.tokens() * d.heads * d.head_dim));
  for (const auto id : {wide_q, wide_k, wide_v, mixed, sums, seen}) t_->drop(id);
  return out;
}

}  // namespace sealift::trainer::plan
