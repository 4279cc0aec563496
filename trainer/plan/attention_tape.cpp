// SPDX-License-Identifier: Apache-2.0
// Latent attention and sinks on the tape: models/latent_attention.cpp and models/sinks.hpp, line by line.
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

Id DecoderTape::latent_attention(Id y, bool needs) {
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
  auto mixed = attend(q, k, v, std::nullopt);
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

Id DecoderTape::attend_to_sinks(Id q, Id k, Id v) {
  const auto& d = shape_->decoder;
  const auto rows = batch_.tokens() + batch_.rows, width = d.head_dim + kSinkWidth;
  const auto of_q = of(rows * d.heads * width), of_k = of(rows * d.kv_heads * width);
  t_->meter().touch(Part::Activations, of_q);  // with one element more, before it is wide
  const auto wide_q = made_of({q}, of_q), wide_k = made_of({k}, of_k), wide_v = made_of({v}, of_k);
  const auto sums = t_->make(4 * rows * d.heads), mixed = t_->make(of_q);
  for (const auto id : {wide_q, wide_k, wide_v, mixed, sums}) t_->save(id);
  t_->node([=, this] {
    const auto cuda = on_host() ? 0 : of_q / batch_.compute_bytes * 4 + 2 * of_q;
    t_->give(wide_q, of_q, 2 * of_k + cuda);
    t_->give(wide_k, of_k);
    t_->give(wide_v, of_k);
    for (const auto id : {wide_q, wide_k, wide_v, mixed, sums}) t_->free_saved(id);
    t_->free_gradient(mixed);
    if (!adapts()) t_->parameter(d.heads);
  });
  const auto out = made_of({mixed}, of(batch_.tokens() * d.heads * d.head_dim));
  for (const auto id : {wide_q, wide_k, wide_v, mixed, sums}) t_->drop(id);
  return out;
}

}  // namespace sealift::trainer::plan
