// SPDX-License-Identifier: Apache-2.0
// Attention of sequences of different lengths on the made devices, as FA2 does it: [tokens, heads, head_dim], each
// sequence alone, causal, within a window; heads of a group share keys. In fp32 inside, rounded once.
#include "tests/train/made_device/fused_kernels.hpp"
#include "tests/train/made_device/queue_one.hpp"

#include <torch/library.h>

#include <atomic>
#include <cmath>

namespace sealift::test::made {
namespace {

using Optional = std::optional<at::Tensor>;

std::atomic<Broken> broken{Broken::No};

/// One sequence of one head: probabilities [time, time].
at::Tensor probabilities(const at::Tensor& q, const at::Tensor& k, double scale, std::int64_t window) {
  const auto time = q.size(0);
  const auto places = at::arange(time);
  const auto distance = places.unsqueeze(1) - places.unsqueeze(0);
  auto hidden = distance < 0;
  if (window >= 0) hidden = hidden.logical_or(distance > window);
  return at::softmax((q.matmul(k.t()) * scale).masked_fill(hidden, -std::numeric_limits<double>::infinity()), -1);
}

/// Calls `visit` with the tokens and the head of each sequence, of queries and of keys.
template <class Visit>
void for_each_sequence(const at::Tensor& starts, const at::Tensor& queries, const at::Tensor& keys, Visit visit) {
  const auto group = queries.size(1) / keys.size(1);
  const auto* start = starts.const_data_ptr<std::int32_t>();
  for (std::int64_t i = 0; i + 1 < starts.numel(); ++i) {
    for (std::int64_t head = 0; head < queries.size(1); ++head) {
      visit(at::indexing::Slice(start[i], start[i + 1]), head, head / group);
    }
  }
}

at::Tensor wide(const at::Tensor& tensor) {
  return tensor.to(at::kFloat);
}

double scale_of(std::optional<double> scale, const at::Tensor& queries) {
  return scale.value_or(1 / std::sqrt(static_cast<double>(queries.size(2))));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> attend_lengths(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const Optional& starts, const Optional&,
    c10::SymInt, c10::SymInt, double, bool causal, bool, std::optional<double> scale,
    std::optional<c10::SymInt> window_left, std::optional<c10::SymInt>, const Optional&, const Optional&) {
  TORCH_CHECK(causal && starts, "a made device's attention by lengths is causal");
  TORCH_CHECK(broken != Broken::Fails, "no kernel image is available for execution on the device");
  const c10::DeviceGuard on(query.device());
  const auto output = at::empty_like(query);
  const auto sums = at::empty({query.size(1), query.size(0)}, query.options().dtype(at::kFloat));
  const auto window = window_left ? window_left->expect_int() : -1;
  queue_one("_flash_attention_forward", query, {query, key, value, output},
            [q = for_task(query), k = for_task(key), v = for_task(value), s = for_task(*starts), out = for_task(output),
             scale, window] {
              const auto wide_q = wide(q), wide_k = wide(k), wide_v = wide(v);
              for_each_sequence(s, q, k, [&](auto tokens, std::int64_t head, std::int64_t of_keys) {
                const auto p = probabilities(wide_q.index({tokens, head}), wide_k.index({tokens, of_keys}),
                                             scale_of(scale, q), window);
                out.index({tokens, head})
                    .copy_(p.matmul(wide_v.index({tokens, of_keys})) * (broken == Broken::Wrong ? 2 : 1));
              });
            });
  const auto none = at::empty({0}, query.options().dtype(at::kLong));
  return {output, sums, none, none, none};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> attend_lengths_backward(
    const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& output, const at::Tensor&, const at::Tensor& starts, const at::Tensor&, c10::SymInt, c10::SymInt,
    double, bool, const at::Tensor&, const at::Tensor&, std::optional<double> scale,
    std::optional<c10::SymInt> window_left, std::optional<c10::SymInt>) {
  const c10::DeviceGuard on(query.device());
  const auto dq = at::empty_like(query), dk = at::empty_like(key), dv = at::empty_like(value);
  const auto window = window_left ? window_left->expect_int() : -1;
  queue_one("_flash_attention_backward", query, {gradient, query, key, value, output, dq, dk, dv},
            [g = for_task(gradient), q = for_task(query), k = for_task(key), v = for_task(value), o = for_task(output),
             s = for_task(starts), dq = for_task(dq), dk = for_task(dk), dv = for_task(dv), scale, window] {
              const auto wide_q = wide(q), wide_k = wide(k), wide_v = wide(v), wide_g = wide(g), wide_o = wide(o);
              const auto sum_k = at::zeros_like(wide_k), sum_v = at::zeros_like(wide_v);
              const auto factor = scale_of(scale, q);
              for_each_sequence(s, q, k, [&](auto tokens, std::int64_t head, std::int64_t of_keys) {
                const auto one_q = wide_q.index({tokens, head}), one_k = wide_k.index({tokens, of_keys}),
                           one_g = wide_g.index({tokens, head});
                const auto p = probabilities(one_q, one_k, factor, window);
                const auto inner = (one_g * wide_o.index({tokens, head})).sum(-1, true);
                const auto of_scores = p * (one_g.matmul(wide_v.index({tokens, of_keys}).t()) - inner) * factor;
                dq.index({tokens, head}).copy_(of_scores.matmul(one_k));
                sum_k.index({tokens, of_keys}).add_(of_scores.t().matmul(one_q));
                sum_v.index({tokens, of_keys}).add_(p.t().matmul(one_g));
              });
              dk.copy_(sum_k);
              dv.copy_(sum_v);
            });
  return {dq, dk, dv};
}

}  // namespace

void break_attention_by_length(Broken how) {
  broken = how;
}

void register_by_length_kernels() {
  static torch::Library fused(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  fused.impl("_flash_attention_forward", &attend_lengths);
  fused.impl("_flash_attention_backward", &attend_lengths_backward);
}

}  // namespace sealift::test::made
