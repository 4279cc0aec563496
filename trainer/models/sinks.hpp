// SPDX-License-Identifier: Apache-2.0
// Attention sinks (gpt-oss): each head has one more score, which takes its part of the softmax and gives nothing.
// Any kernel computes them: a token stands in front of all, whose key has an element that no other key has, and each
// query has its head's score there. Its value is zero. A few elements more a head instead of a kernel of one's own.
#pragma once

#include <torch/torch.h>

#include <cmath>
#include <optional>

namespace sealift::trainer {

/// Elements that a head gets: kernels take widths by eights.
inline constexpr std::int64_t kSinkWidth = 8;

struct WithSinks {
  at::Tensor queries, keys, values;  ///< [batch, 1 + time, heads, head_dim + kSinkWidth]
  double scale = 1;
};

/// queries, keys, values [batch, time, heads, head_dim]; sinks [heads of queries]; `scale` of scores, unset:
/// 1 / sqrt(head_dim).
inline WithSinks with_sinks(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                            const at::Tensor& sinks, std::optional<double> scale) {
  const auto batch = queries.size(0), time = queries.size(1), heads = queries.size(2), width = queries.size(3);
  const auto of_scores = scale.value_or(1 / std::sqrt(static_cast<double>(width)));
  const auto own = sinks.to(queries.scalar_type()).view({1, 1, heads, 1}).expand({batch, time, heads, 1});
  const auto wide = at::constant_pad_nd(at::cat({queries, own}, -1), {0, kSinkWidth - 1, 0, 0, 1, 0}, 0);
  auto front = at::zeros({batch, 1, keys.size(2), width + kSinkWidth}, keys.options().requires_grad(false));
  front.select(-1, width).fill_(1 / of_scores);
  return {.queries = wide,
          .keys = at::cat({front, at::constant_pad_nd(keys, {0, kSinkWidth}, 0)}, 1),
          .values = at::constant_pad_nd(values, {0, kSinkWidth, 0, 0, 1, 0}, 0),
          .scale = of_scores};
}

/// A mask of scores [batch or 1, 1, time, time], of which all see the token in front too.
inline std::optional<at::Tensor> with_sinks(const std::optional<at::Tensor>& mask) {
  if (!mask) return {};
  return at::constant_pad_nd(*mask, {1, 0, 1, 0}, 0);
}

/// What the queries got, without that of the token in front.
inline at::Tensor without_sinks(const at::Tensor& mixed, const at::Tensor& queries) {
  return mixed.narrow(1, 1, queries.size(1)).narrow(3, 0, queries.size(3));
}

}  // namespace sealift::trainer
