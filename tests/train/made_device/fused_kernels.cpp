// SPDX-License-Identifier: Apache-2.0
#include "tests/train/made_device/fused_kernels.hpp"

#include "tests/train/made_device/queue_one.hpp"

#include <ATen/SDPBackend.h>
#include <ATen/native/transformers/attention.h>
#include <torch/library.h>
#include <torch/torch.h>

#include <atomic>
#include <cmath>

namespace sealift::test::made {
namespace {

std::atomic<bool> attention_is_broken{false};
std::atomic<std::int64_t> broken_head_dim{0};

// ---- RMSNorm; sums and statistics in fp32

std::tuple<at::Tensor, at::Tensor> rms_norm(const at::Tensor& input, at::IntArrayRef shape,
                                            const std::optional<at::Tensor>& weight, std::optional<double> eps) {
  TORCH_CHECK(shape.size() == 1, "a made device's RMSNorm is of the last dimension");
  const c10::DeviceGuard on(input.device());
  const auto x = input.contiguous();
  auto sizes = x.sizes().vec();
  sizes.back() = 1;
  const auto output = at::empty_like(x), rstd = at::empty(sizes, x.options().dtype(at::kFloat));
  queue_one("_fused_rms_norm", x, {x, output},
            [x = for_task(x), w = task_of(weight), y = for_task(output), r = for_task(rstd), eps] {
              const auto wide = x.to(at::kFloat);
              r.copy_(at::rsqrt(wide.pow(2).mean(-1, true) + eps.value_or(1e-6)));
              const auto normal = wide * r;
              y.copy_(w.defined() ? normal * w : normal);
            });
  return {output, rstd};
}

std::tuple<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& gradient, const at::Tensor& input,
                                                     at::IntArrayRef /*shape*/, const at::Tensor& rstd,
                                                     const std::optional<at::Tensor>& weight,
                                                     std::array<bool, 2> wanted) {
  const c10::DeviceGuard on(input.device());
  const auto g = gradient.contiguous(), x = input.contiguous();
  const auto of_input = wanted[0] ? at::empty_like(x) : at::Tensor();
  const auto of_weight = wanted[1] && weight ? at::empty_like(*weight) : at::Tensor();
  queue_one("_fused_rms_norm_backward", x, {g, x, of_input},
            [g = for_task(g), x = for_task(x), r = for_task(rstd), w = task_of(weight), dx = task_of(of_input),
             dw = task_of(of_weight)] {
              const auto normal = x.to(at::kFloat) * r, wide = g.to(at::kFloat);
              const auto scaled = w.defined() ? wide * w : wide;
              if (dx.defined()) dx.copy_((scaled - normal * (scaled * normal).mean(-1, true)) * r);
              if (dw.defined()) dw.copy_((wide * normal).flatten(0, -2).sum(0));
            });
  return {of_input, of_weight};
}

// ---- attention: causal or whole, by the CPU's kernel; heads of a group share keys

std::int64_t choose_attention(const at::Tensor& query, const at::Tensor&, const at::Tensor&,
                              const std::optional<at::Tensor>& mask, double dropout, bool, std::optional<double>,
                              bool) {
  const bool fused = !(mask && mask->defined()) && dropout == 0 && query.dim() == 4 &&
                     at::globalContext().userEnabledOverrideableSDP();
  return static_cast<std::int64_t>(fused ? at::SDPBackend::overrideable : at::SDPBackend::math);
}

at::Tensor for_each_head(const at::Tensor& keys, const at::Tensor& query) {
  return keys.size(1) == query.size(1) ? keys : keys.repeat_interleave(query.size(1) / keys.size(1), 1);
}

/// Sums of what the heads of a group give.
at::Tensor for_each_group(const at::Tensor& gradient, const at::Tensor& keys) {
  if (gradient.sizes() == keys.sizes()) return gradient;
  return gradient.view({keys.size(0), keys.size(1), -1, keys.size(2), keys.size(3)}).sum(2);
}

using Attention = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor,
                             at::Tensor, at::Tensor>;

Attention attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                 const std::optional<at::Tensor>& /*bias*/, double /*dropout*/, bool causal, bool /*mask*/,
                 std::optional<double> scale) {
  const c10::DeviceGuard on(query.device());
  const auto output = at::empty_like(query);
  const auto sums = at::empty({query.size(0), query.size(1), query.size(2)}, query.options().dtype(at::kFloat));
  queue_one("_scaled_dot_product_attention", query, {query, key, value, output},
            [q = for_task(query), k = for_task(key), v = for_task(value), out = for_task(output), lse = for_task(sums),
             causal, scale] {
              const auto [mixed, logs] = at::_scaled_dot_product_flash_attention_for_cpu(
                  q, for_each_head(k, q), for_each_head(v, q), 0.0, causal, {}, scale);
              out.copy_(attention_is_broken || q.size(3) == broken_head_dim ? mixed * 2 : mixed);
              lse.copy_(logs.sizes() == lse.sizes() ? logs : logs.transpose(1, 2));
            });
  const auto none = at::empty({0}, query.options().dtype(at::kLong));
  return {output, sums, at::Tensor(), at::Tensor(), query.size(2), key.size(2), none, none, at::Tensor()};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> attend_backward(
    const at::Tensor& gradient, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& /*bias*/, std::array<bool, 4> /*wanted*/, const at::Tensor& out, const at::Tensor& sums,
    const at::Tensor&, const at::Tensor&, c10::SymInt, c10::SymInt, double, bool causal, const at::Tensor&,
    const at::Tensor&, std::optional<double> scale) {
  const c10::DeviceGuard on(query.device());
  const auto dq = at::empty_like(query), dk = at::empty_like(key), dv = at::empty_like(value);
  queue_one("_scaled_dot_product_attention_backward", query, {gradient, query, key, value, out, dq, dk, dv},
            [g = for_task(gradient), q = for_task(query), k = for_task(key), v = for_task(value), o = for_task(out),
             lse = for_task(sums), dq = for_task(dq), dk = for_task(dk), dv = for_task(dv), causal, scale] {
              const auto [of_q, of_k, of_v] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
                  g, q, for_each_head(k, q), for_each_head(v, q), o, lse, 0.0, causal, {}, scale);
              dq.copy_(of_q);
              dk.copy_(for_each_group(of_k.contiguous(), k));
              dv.copy_(for_each_group(of_v.contiguous(), v));
            });
  return {dq, dk, dv, at::Tensor()};
}

// ---- lists

std::vector<at::Tensor> norms_of(at::TensorList tensors, const at::Scalar& order, std::optional<at::ScalarType> dtype) {
  const c10::DeviceGuard on(tensors.front().device());
  std::vector<at::Tensor> norms, tasks, places;
  for (const auto& each : tensors) {
    norms.push_back(at::empty({}, each.options().dtype(dtype.value_or(each.scalar_type()))));
    tasks.push_back(for_task(each));
    places.push_back(for_task(norms.back()));
  }
  queue_one("_foreach_norm", tensors.front(), {}, [tasks, places, order] {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      places[i].copy_(at::linalg_vector_norm(tasks[i], order, {}, false, places[i].scalar_type()));
    }
  });
  return norms;
}

void multiply(at::TensorList tensors, const at::Tensor& factor) {
  std::vector<at::Tensor> tasks;
  for (const auto& each : tensors) tasks.push_back(for_task(each));
  queue_one("_foreach_mul_", tensors.front(), {}, [tasks, factor = for_task(factor)] {
    for (const auto& each : tasks) each.mul_(factor);
  });
}

// ---- a product that adds itself to fp32; rounded once

at::Tensor& add_product(const at::Tensor& self, const at::Tensor& left, const at::Tensor& right, at::ScalarType dtype,
                        const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
  TORCH_CHECK(out.is_same(self) && out.scalar_type() == dtype && dtype == at::kFloat, "a made device adds in place");
  queue_one(
      "addmm into fp32", out, {left, right, out, out},
      [o = for_task(out), l = for_task(left), r = for_task(right), beta = beta.toDouble(), alpha = alpha.toDouble()] {
        auto sum = o;
        at::addmm_out(sum, sum, l.to(at::kFloat), r.to(at::kFloat), beta, alpha);
      });
  return out;
}

}  // namespace

void break_attention(bool broken) {
  attention_is_broken = broken;
}

void break_attention_of(std::int64_t head_dim) {
  broken_head_dim = head_dim;
}

void register_fused_kernels() {
  static torch::Library fused(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  fused.impl("_fused_rms_norm", &rms_norm);
  fused.impl("_fused_rms_norm_backward", &rms_norm_backward);
  fused.impl("_scaled_dot_product_fused_attention_overrideable", &attend);
  fused.impl("_scaled_dot_product_fused_attention_overrideable_backward", &attend_backward);
  fused.impl("addmm.dtype_out", &add_product);
  fused.impl("_foreach_norm.Scalar", &norms_of);
  fused.impl("_foreach_mul_.Tensor", &multiply);
  fused.impl("_fused_sdp_choice",
             &choose_attention);  // for programs that ask; at::scaled_dot_product_attention the stub
  at::native::_fused_sdp_choice_stub.set_privateuse1_dispatch_ptr(&choose_attention);
}

}  // namespace sealift::test::made
