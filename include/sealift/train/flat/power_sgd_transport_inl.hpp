// SPDX-License-Identifier: Apache-2.0
// The bodies of power_sgd_transport.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/flat/power_sgd_transport.hpp>

#include <ATen/CPUGeneratorImpl.h>

namespace sealift::train {

namespace detail {

/// One pass of Gram-Schmidt over the columns of each matrix in `matrices` [count, rows, rank], in place.
SEALIFT_BODY void gram_schmidt(const at::Tensor& matrices, double epsilon) {
  const auto rank = matrices.size(2);
  for (std::int64_t i = 0; i < rank; ++i) {
    auto column = matrices.narrow(2, i, 1);
    auto norm = at::linalg_vector_norm(column, 2, at::IntArrayRef{1}, /*keepdim=*/true);
    epsilon == 0 ? norm.masked_fill_(norm.eq(0), 1) : norm.add_(epsilon);
    column.div_(norm);
    if (i + 1 == rank) break;
    auto rest = matrices.narrow(2, i + 1, rank - i - 1);
    rest.sub_(at::sum(column * rest, at::IntArrayRef{1}, /*keepdim=*/true) * column);
  }
}

/// Makes the columns of each matrix in `matrices` [count, rows, rank] orthonormal, in place.
SEALIFT_BODY void orthogonalize(const at::Tensor& matrices, double epsilon) {
  if (matrices.size(2) > 2 && matrices.scalar_type() != at::kHalf && matrices.scalar_type() != at::kBFloat16) {
    matrices.copy_(std::get<0>(at::linalg_qr(matrices)));
    return;
  }
  gram_schmidt(matrices, epsilon);
  // What is left of a column that depended on the ones before is rounding, and not orthogonal to them yet.
  if (epsilon == 0 && matrices.size(2) > 1) gram_schmidt(matrices, 0);
}

}  // namespace detail

SEALIFT_BODY PowerSgdTransport::PowerSgdTransport(std::shared_ptr<PowerSgd> shared, std::vector<BufferPart> parts)
    : shared_(std::move(shared)), parts_(std::move(parts)) {
  const auto& options = shared_->options();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    std::int64_t numel = 1;
    for (const auto size : parts_[i].sizes) numel *= size;
    const auto n = parts_[i].sizes.empty() || numel == 0 ? 0 : parts_[i].sizes[0], m = n == 0 ? 0 : numel / n;
    const auto rank = std::min({n, m, options.matrix_approximation_rank});
    const bool gains = static_cast<double>((n + m) * rank) * options.min_compression_rate <
                       static_cast<double>(n * m);  // _should_compress
    if (!gains) {
      plain_.push_back({parts_[i].offset, numel});
      plain_numel_ += numel;
      continue;
    }
    // In PyTorch's order, shape by shape, in which first factors are drawn.
    const auto same =
        std::find_if(shapes_.begin(), shapes_.end(), [&](const auto& shape) { return shape.n == n && shape.m == m; });
    (same == shapes_.end() ? shapes_.emplace_back(Shape{n, m, rank, {}}) : *same).members.push_back(i);
  }
  for (const auto& shape : shapes_) {
    for (std::size_t i = 0; i < shape.members.size(); ++i) {
      if (i > 0 && options.batch_tensors_with_same_shape) {
        matrices_.back().members.push_back(shape.members[i]);
      } else {
        matrices_.push_back({shape.n, shape.m, shape.rank, {shape.members[i]}});
      }
    }
  }
  for (const auto& each : matrices_) {
    p_numel_ += each.count() * each.n * each.rank;
    q_numel_ += each.count() * each.m * each.rank;
  }
}

SEALIFT_BODY Transfer PowerSgdTransport::reduce_scatter(at::Tensor, at::Tensor, Collectives, const std::string& label,
                                                        std::uint64_t) {
  TORCH_CHECK(false, "PowerSGD of ", label,
              ", which is sharded: no rank has a whole matrix to factor; use it with "
              "ddp, or compress gradients to Fp16 or Bf16");
}

SEALIFT_BODY Transfer PowerSgdTransport::all_reduce(at::Tensor buffer, Collectives group, const std::string& label,
                                                    std::uint64_t detail) {
  if (group.size() == 1) return {};
  if (!shared_->compresses() || matrices_.empty()) return Transfer(group.all_reduce(buffer, label, detail));
  at::NoGradGuard no_grad;
  prepare(buffer);
  const auto first = detail::flat_buffer(plain_numel_ + p_numel_, buffer.options());
  std::int64_t end = 0;
  for (const auto& [offset, numel] : plain_) {
    first.narrow(0, end, numel).copy_(buffer.narrow(0, offset, numel));
    end += numel;
  }
  std::vector<at::Tensor> values, ps;
  for (auto& each : matrices_) {
    values.push_back(take(each, buffer));
    ps.push_back(first.narrow(0, end, each.count() * each.n * each.rank).view({each.count(), each.n, each.rank}));
    end += ps.back().numel();
    auto p = ps.back();
    at::bmm_out(p, values.back(), each.q);
  }
  const auto second = detail::flat_buffer(q_numel_, buffer.options());
  auto ticket = group.all_reduce(first, label + ", first factors", detail);
  // The transport outlives what is in flight on it: both belong to one FlatGradient.
  return Transfer(
      std::move(ticket),
      [this, buffer, second, values, ps, ranks = group.size()] { decompress(buffer, second, values, ps, ranks); },
      [this, buffer, first, second, values, ps, group, label, detail]() mutable {
        put_plain(buffer, first);
        multiply_back(second, values, ps, group.size());
        return group.all_reduce(second, label + ", second factors", detail);
      });
}

SEALIFT_BODY at::Tensor PowerSgdTransport::view(const at::Tensor& buffer, const Matrices& matrices,
                                                std::size_t member) const {
  const auto& part = parts_[matrices.members[member]];
  return buffer.narrow(0, part.offset, matrices.n * matrices.m).view({matrices.n, matrices.m});
}

SEALIFT_BODY void PowerSgdTransport::prepare(const at::Tensor& buffer) {
  const auto& options = shared_->options();
  bool known = options.warm_start;
  for (auto& each : matrices_) known = (each.q.defined() || adopt(each, buffer)) && known;
  if (!known) draw(buffer);
  for (auto& each : matrices_) detail::orthogonalize(each.q, options.orthogonalization_epsilon);
}

SEALIFT_BODY bool PowerSgdTransport::adopt(Matrices& each, const at::Tensor& buffer) {
  each.q = at::empty({each.count(), each.m, each.rank}, buffer.options());
  if (shared_->options().use_error_feedback) each.error = at::zeros({each.count(), each.n, each.m}, buffer.options());
  bool known = true;
  for (std::size_t i = 0; i < each.members.size(); ++i) {
    auto& memory = shared_->memories()[parts_[each.members[i]].name];
    const auto index = static_cast<std::int64_t>(i);
    known = move(memory.q, each.q[index]) && known;
    if (each.error.defined()) move(memory.error, each.error[index]);
  }
  return known;
}

SEALIFT_BODY bool PowerSgdTransport::move(at::Tensor& memory, at::Tensor place) {
  const auto old = std::exchange(memory, place);
  if (!old.defined()) return false;
  TORCH_CHECK(old.sizes() == place.sizes(), "PowerSGD: the loaded state has a factor or error of shape ", old.sizes(),
              " where ", place.sizes(), " is needed; load it with the options and the model that saved it");
  place.copy_(old);
  return true;
}

SEALIFT_BODY void PowerSgdTransport::draw(const at::Tensor& buffer) {
  const auto generator = at::detail::createCPUGenerator(shared_->draw_seed());
  for (auto& each : matrices_) each.q.copy_(at::randn(each.q.sizes(), generator, buffer.options().device(at::kCPU)));
}

SEALIFT_BODY at::Tensor PowerSgdTransport::take(Matrices& each, const at::Tensor& buffer) const {
  std::vector<at::Tensor> views;
  for (std::size_t i = 0; i < each.members.size(); ++i) views.push_back(view(buffer, each, i));
  auto values = views.size() == 1 ? views[0].unsqueeze(0) : at::stack(views);
  if (each.error.defined()) {
    values.add_(each.error);
    each.error.copy_(values);
  }
  return values;
}

SEALIFT_BODY void PowerSgdTransport::put_plain(at::Tensor buffer, const at::Tensor& first) const {
  at::NoGradGuard no_grad;
  std::int64_t end = 0;
  for (const auto& [offset, numel] : plain_) {
    buffer.narrow(0, offset, numel).copy_(first.narrow(0, end, numel));
    end += numel;
  }
}

SEALIFT_BODY at::Tensor PowerSgdTransport::second_factor(const at::Tensor& second, std::int64_t& end,
                                                         const Matrices& each) const {
  const auto q = second.narrow(0, end, each.count() * each.m * each.rank).view({each.count(), each.m, each.rank});
  end += q.numel();
  return q;
}

SEALIFT_BODY void PowerSgdTransport::multiply_back(const at::Tensor& second, const std::vector<at::Tensor>& values,
                                                   std::vector<at::Tensor>& ps, std::int64_t ranks) const {
  at::NoGradGuard no_grad;
  std::int64_t end = 0;
  for (std::size_t i = 0; i < matrices_.size(); ++i) {
    // PyTorch's first factors are of gradients that are not divided yet.
    detail::orthogonalize(ps[i], shared_->options().orthogonalization_epsilon / static_cast<double>(ranks));
    auto q = second_factor(second, end, matrices_[i]);
    at::bmm_out(q, values[i].transpose(1, 2), ps[i]);
  }
}

SEALIFT_BODY void PowerSgdTransport::decompress(const at::Tensor& buffer, const at::Tensor& second,
                                                std::vector<at::Tensor> values, const std::vector<at::Tensor>& ps,
                                                std::int64_t ranks) {
  at::NoGradGuard no_grad;
  std::int64_t end = 0;
  for (std::size_t i = 0; i < matrices_.size(); ++i) {
    auto& each = matrices_[i];
    const auto q = second_factor(second, end, each);
    at::bmm_out(values[i], ps[i], q.transpose(1, 2));
    for (std::size_t k = 0; k < each.members.size() && each.members.size() > 1; ++k) {
      view(buffer, each, k).copy_(values[i][static_cast<std::int64_t>(k)]);
    }
    // A value that is not finite on any rank makes all of P and Q so. Such a step is skipped, and its error dropped.
    const auto norm = at::linalg_vector_norm(q, 2, at::IntArrayRef{1}, /*keepdim=*/true, at::kFloat);
    if (each.error.defined()) {
      each.error.sub_(values[i], 1.0 / static_cast<double>(ranks));
      each.error.masked_fill_(norm.isfinite().all(2, /*keepdim=*/true).logical_not(), 0);
    }
    // A column of zeros would stay so for ever, and what it should carry never be sent.
    each.q.copy_(at::where(norm.isfinite().logical_and(norm > 0), q, each.q));
  }
}

SEALIFT_BODY std::unique_ptr<Transport> make_transport(GradientCompression compression, at::ScalarType dtype,
                                                       std::shared_ptr<PowerSgd> power_sgd,
                                                       std::vector<BufferPart> parts) {
  switch (compression) {
    case GradientCompression::None:
      return std::make_unique<PlainTransport>();
    case GradientCompression::Fp16:
    case GradientCompression::Bf16:
      TORCH_CHECK(at::elementSize(dtype) > 2, "gradients are reduced in ", dtype,
                  ", which is as small as what compression would send; leave out reduce_dtype or the compression");
      return std::make_unique<HalfTransport>(compression == GradientCompression::Fp16 ? at::kHalf : at::kBFloat16);
    case GradientCompression::PowerSgd:
      return std::make_unique<PowerSgdTransport>(std::move(power_sgd), std::move(parts));
  }
  TORCH_CHECK(false, "unknown compression of gradients ", static_cast<int>(compression));
}

}  // namespace sealift::train
