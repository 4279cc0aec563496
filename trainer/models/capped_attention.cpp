// SPDX-License-Identifier: Apache-2.0
#include "trainer/models/capped_attention.hpp"

#include "trainer/models/attention_choice.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sealift::trainer {
namespace {

/// Rows of queries, and the keys that any of them sees.
struct Piece {
  std::int64_t row = 0, rows = 0, key = 0, keys = 0;
};

/// What is the same for all pieces. Tensors are [batch, kv_heads, …]: the queries of a head of keys lie together.
struct Shape {
  std::int64_t batch, heads, kv_heads, time, seen, head_dim, window;
  double scale, cap;
  std::int64_t at_a_time;

  std::vector<Piece> pieces() const {
    const auto most = capped_rows(batch * heads, seen, window, at_a_time);
    std::vector<Piece> all;
    for (std::int64_t row = 0; row < time; row += most) {
      Piece piece{.row = row, .rows = std::min(most, time - row)};
      const auto first = row + seen - time;  // the first query's own place among the keys
      piece.key = window > 0 ? std::max<std::int64_t>(0, first - window + 1) : 0;
      piece.keys = first + piece.rows - piece.key;
      all.push_back(piece);
    }
    return all;
  }

  /// [batch, kv_heads, rows of all heads of a key's, head_dim]
  at::Tensor rows_of(const at::Tensor& queries, const Piece& piece) const {
    return queries.narrow(1, piece.row, piece.rows)
        .unflatten(2, {kv_heads, heads / kv_heads})
        .permute({0, 2, 3, 1, 4})
        .reshape({batch, kv_heads, heads / kv_heads * piece.rows, head_dim});
  }
  /// The other way, into the rows of `to`.
  void put_rows(const at::Tensor& to, const Piece& piece, const at::Tensor& rows) const {
    to.narrow(1, piece.row, piece.rows)
        .unflatten(2, {kv_heads, heads / kv_heads})
        .copy_(rows.view({batch, kv_heads, heads / kv_heads, piece.rows, head_dim}).permute({0, 3, 1, 2, 4}));
  }
  /// [batch, kv_heads, keys, head_dim]
  static at::Tensor keys_of(const at::Tensor& keys, const Piece& piece) {
    return keys.narrow(1, piece.key, piece.keys).transpose(1, 2);
  }

  /// Which keys a row doesn't see: bool, for [batch, heads, rows, keys].
  at::Tensor hidden(const at::Tensor& segments, const Piece& piece, at::Device device) const {
    const auto options = at::TensorOptions(device).dtype(at::kLong);
    const auto first = piece.row + seen - time;
    const auto distance = at::arange(first, first + piece.rows, options).unsqueeze(1) -
                          at::arange(piece.key, piece.key + piece.keys, options).unsqueeze(0);
    auto hidden = distance < 0;
    if (window > 0) hidden = hidden | (distance >= window);
    if (!segments.defined()) return hidden;
    const auto own = segments.narrow(1, first, piece.rows).unsqueeze(2);
    return (hidden | (own != segments.narrow(1, piece.key, piece.keys).unsqueeze(1))).unsqueeze(1);
  }

  /// tanh(scale * queries · keys / cap) in fp32
  at::Tensor bent(const at::Tensor& queries, const at::Tensor& keys) const {
    return at::matmul(queries, keys.transpose(2, 3)).to(at::kFloat).mul_(scale / cap).tanh_();
  }

  /// The weights of keys in fp32. Takes `bent`, whose memory it uses, and is of its shape.
  at::Tensor weights(const at::Tensor& bent, const at::Tensor& segments, const Piece& piece) const {
    bent.mul_(cap)
        .view({batch, heads, piece.rows, piece.keys})
        .masked_fill_(hidden(segments, piece, bent.device()), -std::numeric_limits<double>::infinity());
    return bent.softmax(-1);
  }
};

struct CappedAttention : torch::autograd::Function<CappedAttention> {
  using Tensors = torch::autograd::variable_list;
  using Context = torch::autograd::AutogradContext;

  static at::Tensor forward(Context* context, const at::Tensor& queries, const at::Tensor& keys,
                            const at::Tensor& values, const std::optional<at::Tensor>& given, std::int64_t window,
                            double scale, double cap, std::int64_t at_a_time) {
    const auto segments = given.value_or(at::Tensor());
    context->save_for_backward({queries, keys, values, segments});
    context->saved_data["window"] = window;
    context->saved_data["scale"] = scale;
    context->saved_data["cap"] = cap;
    context->saved_data["at_a_time"] = at_a_time;
    const auto shape = shape_of(context, queries, keys);
    const auto mixed = at::empty(queries.sizes(), queries.options());
    for (const auto& piece : shape.pieces()) {
      const auto bent = shape.bent(shape.rows_of(queries, piece), Shape::keys_of(keys, piece));
      const auto weights = shape.weights(bent, segments, piece).to(values.scalar_type());
      shape.put_rows(mixed, piece, at::matmul(weights, Shape::keys_of(values, piece)));
    }
    return mixed;
  }

  static Tensors backward(Context* context, const Tensors& gradients) {
    const auto saved = context->get_saved_variables();
    const auto &queries = saved[0], &keys = saved[1], &values = saved[2], &segments = saved[3];
    const auto dtype = queries.scalar_type();
    const auto shape = shape_of(context, queries, keys);
    const auto of_queries = at::empty(queries.sizes(), queries.options());
    // Sums over pieces, in fp32 whatever the keys are.
    const auto of_keys = at::zeros(keys.sizes(), keys.options().dtype(at::kFloat)), of_values = at::zeros_like(of_keys);
    for (const auto& piece : shape.pieces()) {
      const auto rows = shape.rows_of(queries, piece), seen = Shape::keys_of(keys, piece);
      const auto gradient = shape.rows_of(gradients[0], piece);
      const auto bent = shape.bent(rows, seen);
      const auto weights = shape.weights(bent.clone(), segments, piece);
      Shape::keys_of(of_values, piece).add_(at::matmul(weights.to(dtype).transpose(2, 3), gradient));
      auto of_scores = at::matmul(gradient, Shape::keys_of(values, piece).transpose(2, 3)).to(at::kFloat);
      of_scores = at::_softmax_backward_data(of_scores, weights, -1, at::kFloat);
      of_scores.mul_(bent.square_().neg_().add_(1)).mul_(shape.scale);
      const auto slopes = of_scores.to(dtype);
      shape.put_rows(of_queries, piece, at::matmul(slopes, seen));
      Shape::keys_of(of_keys, piece).add_(at::matmul(slopes.transpose(2, 3), rows));
    }
    return {of_queries, of_keys.to(dtype), of_values.to(dtype), {}, {}, {}, {}, {}};
  }

 private:
  static Shape shape_of(Context* context, const at::Tensor& queries, const at::Tensor& keys) {
    const auto& data = context->saved_data;
    return {.batch = queries.size(0),
            .heads = queries.size(2),
            .kv_heads = keys.size(2),
            .time = queries.size(1),
            .seen = keys.size(1),
            .head_dim = queries.size(3),
            .window = data.at("window").toInt(),
            .scale = data.at("scale").toDouble(),
            .cap = data.at("cap").toDouble(),
            .at_a_time = data.at("at_a_time").toInt()};
  }
};

}  // namespace

std::int64_t capped_rows(std::int64_t heads, std::int64_t seen, std::int64_t window, std::int64_t at_a_time) {
  const auto most = std::max<std::int64_t>(1, at_a_time / heads);  // scores of one head
  const auto of_all = std::max<std::int64_t>(1, most / seen);
  if (window == 0) return of_all;
  // rows * (rows + window - 1) <= most
  const auto before = static_cast<double>(window - 1);
  auto rows = static_cast<std::int64_t>((std::sqrt(before * before + 4 * static_cast<double>(most)) - before) / 2);
  while (rows > 1 && rows * (rows + window - 1) > most) --rows;
  return std::max(of_all, rows);
}

at::Tensor attend_capped(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                         const at::Tensor& segments, const CappedScores& how) {
  if (!queries.is_meta()) note_attention(AttentionWay::Capped);
  const auto scale = how.scale.value_or(1 / std::sqrt(static_cast<double>(queries.size(3))));
  // Autograd takes no undefined tensor as an argument.
  const auto given = segments.defined() ? std::optional(segments) : std::nullopt;
  return CappedAttention::apply(queries, keys, values, given, how.window, scale, how.cap, how.at_a_time);
}

}  // namespace sealift::trainer
