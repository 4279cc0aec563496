// SPDX-License-Identifier: Apache-2.0
#include "trainer/plan/decoder_tape.hpp"

#include <algorithm>
#include <tuple>

namespace sealift::trainer::plan {
namespace {

/// models/label_log_probabilities.hpp: elements of logits at a time, and the most that a head's gradient may be in fp32
/// to be made in forward.
constexpr std::int64_t kLogitsAtATime = std::int64_t{1} << 26, kMostSumBytes = std::int64_t{1} << 30;
/// models/capped_attention.hpp
constexpr std::int64_t kScoresAtATime = std::int64_t{1} << 26;

}  // namespace

using Id = Tape::Id;

/// A gradient that is made beside the gradients of inputs, and collected when the operation is over.
void DecoderTape::weight(std::int64_t numel) {
  t_->meter().touch(Part::Gradients, of(numel));
}

Id DecoderTape::embed() {
  const auto x = t_->make(of(batch_.tokens() * shape_->decoder.width));
  t_->node([this, x] {
    t_->free_gradient(x);
    if (!adapts()) t_->parameter(shape_->decoder.vocabulary * shape_->decoder.width);
  });
  return shape_->decoder.scales_embedding ? scaled(x, !adapts()) : x;
}

Id DecoderTape::layer_norm(Id x, std::int64_t rows, std::int64_t width, bool needs) {
  const auto own = of(rows * width);
  const auto statistics = t_->make(2 * 4 * rows), y = t_->make(own);
  if (needs) {
    t_->save(x);
    t_->save(statistics);
    t_->node([=, this] {
      t_->give(x, own);
      t_->free_saved(statistics);
      t_->free_saved(x);
      t_->free_gradient(y);
    });
  }
  t_->drop(statistics);
  return y;
}

Id DecoderTape::norm_if(bool has, Id x, bool needs) {
  const auto& d = shape_->decoder;
  if (!has) return x;
  return d.plain_norms ? layer_norm(x, batch_.tokens(), d.width, needs) : norm(x, batch_.tokens(), d.width, needs);
}

Id DecoderTape::clipped(Id x) {
  if (!shape_->decoder.clips) return x;
  const auto bytes = t_->bytes(x);
  const auto y = t_->make(bytes);
  t_->save(x);
  t_->node([=, this] {
    t_->give(x, bytes, bytes / batch_.compute_bytes);  // which elements were within
    t_->free_saved(x);
    t_->free_gradient(y);
  });
  t_->drop(x);
  return y;
}

Id DecoderTape::scaled(Id x, bool needs) {
  const auto bytes = t_->bytes(x);
  const auto y = t_->make(bytes);
  if (needs) {
    t_->node([=, this] {
      t_->give(x, bytes);
      t_->free_gradient(y);
    });
  }
  t_->drop(x);
  return y;
}

/// On the host a chain of small operations in fp32, of which backward keeps x and, for the weight, the normalized x.
Id DecoderTape::norm(Id x, std::int64_t rows, std::int64_t width, bool needs, bool has_weight) {
  auto& meter = t_->meter();
  const auto full = rows * width * 4, own = of(rows * width);
  const bool narrow = own < full, trains = !adapts() && has_weight;
  const auto statistics = t_->make(4 * rows);
  if (!on_host()) {
    const bool widens = narrow && shape_->decoder.one_plus_norms;
    const auto from = widens ? t_->make(full) : x;
    if (widens) meter.add(Part::Activations, full);  // the result, before it is narrow again
    const auto y = t_->make(own);
    if (widens) meter.remove(Part::Activations, full);
    if (needs) {
      t_->save(from);
      t_->save(statistics);
      t_->node([=, this] {
        t_->give(x, own, widens ? 2 * full : 0);
        t_->free_saved(statistics);
        t_->free_saved(from);
        t_->free_gradient(y);
        if (trains) t_->parameter(width);
      });
    }
    t_->drop(statistics);
    if (widens) t_->drop(from);
    return y;
  }
  const auto wide = narrow ? t_->make(full) : x;
  meter.touch(Part::Activations, full);  // the squares
  const auto normal = t_->make(full);
  if (narrow) meter.add(Part::Activations, full);  // times the weight, before it is narrow again
  const auto y = t_->make(own);
  if (narrow) meter.remove(Part::Activations, full);
  if (needs || trains) {
    if (needs) t_->save(wide);
    if (needs) t_->save(statistics);
    if (trains) t_->save(normal);
    t_->node([=, this] {
      if (trains) t_->free_saved(normal);
      if (needs) t_->give(x, own, (trains ? 4 : 5) * full - own);
      if (needs) t_->free_saved(statistics);
      if (needs) t_->free_saved(wide);
      t_->free_gradient(y);
      if (trains) t_->parameter(width);
    });
  }
  t_->drop(normal);
  t_->drop(statistics);
  if (narrow) t_->drop(wide);
  return y;
}

Id DecoderTape::linear(Id x, const Linear& how, std::int64_t rows, bool needs) {
  if (rank_of(how) > 0)
    return shape_->lora_dropout > 0 ? adapted(x, how, rows, needs) : joined(x, {how}, rows, needs)[0];
  const auto y = t_->make(of(rows * how.out));
  const bool trains = !adapts(), adds = t_->adds_products() && how.adapted;  // the router is no projection
  if (trains) t_->save(x);
  t_->node([=, this] {
    if (needs) t_->give(x, of(rows * how.in), trains && !adds ? of(how.in * how.out) : 0);
    if (!needs && trains && !adds) weight(how.in * how.out);
    if (trains && adds) t_->product();
    if (trains) t_->free_saved(x);
    t_->free_gradient(y);
    if (trains && !adds) t_->parameter(how.in * how.out);
    if (trains && how.bias) t_->parameter(how.out);
  });
  return y;
}

/// The frozen projection and beside it two small factors, each adapter with a dropout of its own.
Id DecoderTape::adapted(Id x, const Linear& how, std::int64_t rows, bool needs) {
  const auto rank = shape_->lora_rank, small = of(rows * rank), in = of(rows * how.in), out = of(rows * how.out);
  const auto plain = t_->make(out);
  const bool drops = shape_->lora_dropout > 0;
  const auto mask = drops ? t_->make(on_host() ? in : rows * how.in) : 0;
  const auto dropped = drops ? t_->make(in) : x;
  const auto low = t_->make(small), scaled = t_->make(small);
  const auto y = t_->make(out);
  t_->node([=, this] {  // the frozen projection
    if (needs) t_->give(x, in);
    t_->free_gradient(y);
  });
  if (drops) {
    t_->save(mask);
    t_->node([=, this] {
      if (needs) t_->give(x, in);
      t_->free_saved(mask);
      t_->free_gradient(dropped);
    });
  }
  t_->save(dropped);
  t_->node([=, this] {
    if (needs) t_->give(dropped, in);
    t_->free_saved(dropped);
    t_->free_gradient(low);
    t_->parameter(rank * how.in);
  });
  t_->node([=, this] {
    t_->give(low, small);
    t_->free_gradient(scaled);
  });
  t_->save(scaled);
  t_->node([=, this] {
    t_->give(scaled, small);
    t_->free_saved(scaled);
    t_->parameter(rank * how.out);
  });
  t_->drop(low);
  t_->drop(scaled);
  t_->drop(plain);
  if (drops) t_->drop(mask), t_->drop(dropped);
  return y;
}

/// Projections of one input: one function, unless each adapter drops inputs of its own.
std::vector<Id> DecoderTape::project(Id x, const std::vector<Linear>& hows, std::int64_t rows, bool needs) {
  if (!adapts() || shape_->lora_dropout == 0) return joined(x, hows, rows, needs);
  std::vector<Id> outputs;
  for (const auto& how : hows) outputs.push_back(linear(x, how, rows, needs));
  return outputs;
}

/// models/joined_linear.hpp: backward holds the gradients of all its parameters until it is over, but for those of
/// weights that are added to the engine's buffer.
std::vector<Id> DecoderTape::joined(Id x, const std::vector<Linear>& hows, std::int64_t rows, bool needs) {
  const bool trains = !adapts(), adds = trains && t_->adds_products();
  const auto in = hows.front().in;
  std::int64_t ranks = 0, factors = 0;
  for (const auto& how : hows) ranks += rank_of(how), factors += rank_of(how) > 0 ? 1 : 0;
  const auto a = t_->make(factors > 1 ? of(ranks * in) : 0), low = t_->make(of(rows * ranks));
  std::vector<Id> outputs;
  for (const auto& how : hows) outputs.push_back(t_->make(of(rows * how.out)));
  const bool keeps = trains || ranks > 0;
  if (keeps) t_->save(x);
  for (const auto id : {a, low}) t_->save(id);
  t_->node([=, this] {
    auto& meter = t_->meter();
    std::int64_t made = 0, gradients = of(ranks * in);
    for (const auto& how : hows) {
      made += trains ? (adds ? 0 : how.in * how.out) + (how.bias ? how.out : 0) : 0;
      gradients += of(rank_of(how) * how.out);
    }
    gradients += of(made);
    meter.add(Part::Gradients, gradients);
    meter.add(Part::Activations, of(rows * ranks));
    if (needs) t_->give(x, of(rows * in));
    if (adds) t_->product();
    meter.remove(Part::Activations, of(rows * ranks));
    if (keeps) t_->free_saved(x);
    for (const auto id : {a, low}) t_->free_saved(id);
    for (const auto id : outputs) t_->free_gradient(id);
    meter.remove(Part::Gradients, gradients);
    for (const auto& how : hows) {
      if (trains && !adds) t_->parameter(how.in * how.out);
      if (trains && how.bias) t_->parameter(how.out);
      if (rank_of(how) > 0) t_->parameter(rank_of(how) * how.in), t_->parameter(rank_of(how) * how.out);
    }
  });
  t_->drop(a);
  t_->drop(low);
  return outputs;
}

std::vector<Id> DecoderTape::slices(Id whole, std::size_t count) {
  std::vector<Id> parts;
  for (std::size_t i = 0; i < count; ++i) parts.push_back(t_->make(0));
  t_->node([=, this] {
    t_->give(whole, t_->bytes(whole));
    for (const auto part : parts) t_->free_gradient(part);
  });
  return parts;
}

/// `together`: queries and keys are slices of one buffer, and turned in the same operations.
std::pair<Id, Id> DecoderTape::rotate(Id queries, Id keys, bool together) {
  const auto of_q = bytes_of_heads(shape_->decoder.heads), of_k = bytes_of_heads(shape_->decoder.kv_heads);
  const auto scratch = [this](std::int64_t bytes) {
    return on_host() && batch_.compute_bytes < 4 ? 2 * bytes / batch_.compute_bytes * 4 : 0;
  };
  const auto turned_q = t_->make(of_q);
  if (!together) t_->meter().touch(Part::Activations, scratch(of_q));
  const auto turned_k = t_->make(of_k);
  t_->meter().touch(Part::Activations, scratch(together ? of_q + of_k : of_k));
  t_->node([=, this] {
    t_->give(queries, of_q, scratch(of_q));
    t_->give(keys, of_k, scratch(of_k));
    t_->free_gradient(turned_q);
    t_->free_gradient(turned_k);
  });
  t_->drop(queries);
  t_->drop(keys);
  return {turned_q, turned_k};
}

Id DecoderTape::attend(Id q, Id k, Id v, std::int64_t number, std::optional<Id> fused) {
  const auto& decoder = shape_->decoder;
  if (decoder.caps_scores) return attend_capped(q, k, v);
  if (fused) t_->save(*fused);  // values are a slice of it
  const auto of_q = bytes_of_heads(decoder.heads), of_k = bytes_of_heads(decoder.kv_heads);
  const auto sums = t_->make(4 * batch_.tokens() * decoder.heads);
  const auto mixed = t_->make(of_q);
  const auto seen = mask(number);
  for (const auto id : {q, k, v, mixed, sums, seen.value_or(sums)}) t_->save(id);
  t_->node([=, this] {
    const auto cuda = on_host() ? 0 : of_q / batch_.compute_bytes * 4 + 2 * of_q;
    t_->give(q, of_q, 2 * of_k + cuda);
    t_->give(k, of_k);
    t_->give(v, of_k);
    for (const auto id : {q, k, v, mixed, sums, seen.value_or(sums)}) t_->free_saved(id);
    if (fused) t_->free_saved(*fused);
    t_->free_gradient(mixed);
  });
  t_->drop(sums);
  return mixed;
}

/// models/capped_attention.hpp: a few rows of scores at a time, which backward computes again.
Id DecoderTape::attend_capped(Id q, Id k, Id v) {
  const auto& d = shape_->decoder;
  const auto of_q = bytes_of_heads(d.heads), of_k = bytes_of_heads(d.kv_heads);
  const auto a_row = batch_.rows * d.heads * batch_.length;
  const auto scores = std::min(batch_.length, std::max<std::int64_t>(1, kScoresAtATime / a_row)) * a_row * 4;
  const auto narrow = batch_.compute_bytes < 4 ? scores / 4 * batch_.compute_bytes : 0;
  const auto mixed = t_->make(of_q);
  t_->meter().touch(Part::Activations, 2 * scores + narrow);
  for (const auto id : {q, k, v}) t_->save(id);
  t_->node([=, this] {
    const auto sums = 2 * of_k / batch_.compute_bytes * 4;
    t_->give(q, of_q, sums + 4 * scores + of_q);
    t_->give(k, of_k, narrow > 0 ? sums : 0);
    t_->give(v, of_k);
    for (const auto id : {q, k, v}) t_->free_saved(id);
    t_->free_gradient(mixed);
  });
  return mixed;
}

Id DecoderTape::add(Id x, Id change, bool needs) {
  const auto sum = t_->make(of(batch_.tokens() * shape_->decoder.width));
  t_->node([=, this] {
    if (needs) return t_->pass(sum, x, change);
    t_->pass(sum, change, sum);
    t_->free_gradient(sum);
  });
  return sum;
}

Id DecoderTape::attention(Id y, std::int64_t number, bool needs) {
  const auto& d = shape_->decoder;
  if (d.latent_keys > 0) return latent_attention(y, number, needs);
  const auto tokens = batch_.tokens(), queries = d.heads * d.head_dim, keys = d.kv_heads * d.head_dim;
  const Linear of_keys{d.width, keys, d.qkv_bias};
  std::optional<Id> fused;
  if (d.fused_qkv) fused = linear(y, {d.width, queries + 2 * keys, d.qkv_bias}, tokens, needs);
  const auto projected =
      fused ? slices(*fused, 3) : project(y, {{d.width, queries, d.qkv_bias}, of_keys, of_keys}, tokens, needs);
  // From here on adapters and weights need gradients, whatever the input does.
  auto q = clipped(projected[0]), k = clipped(projected[1]);
  const auto v = clipped(projected[2]);
  if (d.qk_norm) {
    const auto rows = [&](std::int64_t heads) { return d.qk_norm_whole ? tokens : tokens * heads; };
    const auto width = [&](std::int64_t heads) { return d.qk_norm_whole ? heads * d.head_dim : d.head_dim; };
    const auto normal_q = norm(q, rows(d.heads), width(d.heads), true);
    t_->drop(q);
    const auto normal_k = norm(k, rows(d.kv_heads), width(d.kv_heads), true);
    t_->drop(k);
    q = normal_q, k = normal_k;
  }
  const bool one_buffer = fused || !adapts() || shape_->lora_dropout == 0;
  if (d.turns(number)) {
    std::tie(q, k) = rotate(q, k, /*together=*/!d.qk_norm && !d.clips && one_buffer);
  } else if (d.heats) {
    q = scaled(q, true);
  }
  if (d.turns(number) && d.norms_turned) {
    const auto normal_q = norm(q, tokens * d.heads, d.head_dim, true, /*has_weight=*/false);
    t_->drop(q);
    const auto normal_k = norm(k, tokens * d.kv_heads, d.head_dim, true, /*has_weight=*/false);
    t_->drop(k);
    q = normal_q, k = normal_k;
  }
  const auto mixed = d.sinks ? attend_to_sinks(q, k, v, number) : attend(q, k, v, number, fused);
  const auto out = linear(mixed, {queries, d.width, d.out_bias}, tokens, true);
  for (const auto id : {q, k, v, mixed}) t_->drop(id);
  if (fused) t_->drop(*fused);
  return out;
}

Id DecoderTape::mlp(Id y, bool needs, std::int64_t hidden_width) {
  const auto& d = shape_->decoder;
  const auto tokens = batch_.tokens(), hidden = of(tokens * hidden_width);
  const Linear wide{d.width, hidden_width, d.mlp_bias};
  std::optional<Id> fused;
  if (d.fused_gate_up) fused = linear(y, {d.width, 2 * hidden_width, d.mlp_bias}, tokens, needs);
  const auto both = fused ? slices(*fused, 2) : project(y, {wide, wide}, tokens, needs);
  const auto gate = both[0], up = both[1];
  const auto active = t_->make(hidden);
  if (fused) t_->save(*fused);
  t_->save(gate);
  t_->save(up);
  t_->node([=, this] {
    t_->meter().add(Part::Activations, hidden);
    t_->give(gate, hidden);
    t_->give(up, hidden);
    t_->meter().remove(Part::Activations, hidden);
    t_->free_gradient(active);
    t_->free_saved(gate);
    t_->free_saved(up);
    if (fused) t_->free_saved(*fused);
  });
  const auto out = linear(active, {hidden_width, d.width, d.mlp_bias}, tokens, true);
  for (const auto id : {gate, up, active}) t_->drop(id);
  if (fused) t_->drop(*fused);
  return out;
}

Id DecoderTape::layer(Id x, std::int64_t number, bool needs) {
  const auto& d = shape_->decoder;
  const bool below = needs || (!adapts() && !d.plain_norms && d.norm_before_attention);  // gradients of what is mixed
  const auto y = norm_if(d.norm_before_attention, x, needs);
  auto mixed = attention(y, number, below);
  if (y != x) t_->drop(y);
  if (d.norm_after_attention) {
    const auto normal = norm_if(true, mixed, true);
    t_->drop(mixed);
    mixed = normal;
  }
  if (d.scales_residuals) mixed = scaled(mixed, true);
  const auto middle = add(x, mixed, needs);
  t_->drop(mixed);
  const auto z = norm_if(d.norm_before_mlp, middle, true);
  auto change = d.is_sparse(number) ? experts(z, true) : mlp(z, true, d.mlp_width);
  if (z != middle) t_->drop(z);
  if (d.norm_after_mlp) {
    const auto normal = norm_if(true, change, true);
    t_->drop(change);
    change = normal;
  }
  if (d.scales_residuals) change = scaled(change, true);
  const auto out = add(middle, change, true);
  t_->drop(change);
  t_->drop(middle);
  return out;
}

void DecoderTape::loss(Id x, bool needs) {
  const auto& d = shape_->decoder;
  auto& meter = t_->meter();
  const auto tokens = batch_.tokens(), labels = batch_.counted(), head = d.vocabulary * d.width;
  const bool trains = !adapts(), sums = trains && head * 4 <= kMostSumBytes, narrow = batch_.compute_bytes < 4;
  auto normal = norm_if(true, x, needs);
  if (d.scales_logits) normal = scaled(normal, true);
  const auto rows = labels == tokens ? normal : t_->make(of(labels * d.width));
  const auto of_hidden = t_->make(of(labels * d.width), Part::Logits);
  const auto of_head = t_->make(sums ? head * 4 : 0, Part::Logits);
  const auto piece = std::min(labels, std::max<std::int64_t>(1, kLogitsAtATime / d.vocabulary)) * d.vocabulary;
  const auto held = piece * 4 * (d.caps_logits ? 2 : 1);  // with the cap's slopes
  meter.add(Part::Logits, held);
  // Elsewhere than on a host a narrow product adds itself to the fp32 sum.
  meter.touch(Part::Logits, narrow ? of(piece) + (sums && on_host() ? of(head) : 0) : 0);
  meter.remove(Part::Logits, held);
  for (const auto id : {rows, of_hidden, of_head}) t_->save(id);
  t_->node([=, this] {
    if (rows != normal) {
      t_->give(normal, of(tokens * d.width));
      t_->free_gradient(rows);
    }
  });
  t_->node([=, this] {
    const auto states = labels * d.width;
    t_->give(rows, of(states), narrow ? states * 4 : 0);
    if (sums) {
      t_->meter().add(Part::Gradients, of(head));
      t_->meter().touch(Part::Logits, narrow ? head * 4 : 0);
      t_->meter().remove(Part::Gradients, of(head));
    } else if (trains) {
      t_->meter().add(Part::Gradients, of(head));
      t_->meter().touch(Part::Logits, std::min(head, kLogitsAtATime) * 4 * (d.caps_logits ? 2 : 1));
      t_->meter().remove(Part::Gradients, of(head));
    }
    for (const auto id : {rows, of_hidden, of_head}) t_->free_saved(id);
    if (trains && !d.tied_head) t_->parameter(head);
    if (trains && d.tied_head) t_->meter().add(Part::Gradients, of(head));  // waits for the embedding's
  });
  if (rows != normal) t_->drop(rows);
  for (const auto id : {normal, of_hidden, of_head}) t_->drop(id);
}

}  // namespace sealift::trainer::plan
