// SPDX-License-Identifier: Apache-2.0
// The bodies of clip.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/step/clip.hpp>

namespace sealift::train {

namespace detail {

SEALIFT_BODY at::Device exchange_device(const Parallel& parallel) {
  for (const auto& [name, shard] : parallel.named_shards()) {
    if (!shard.is_cpu()) return shard.device();
  }
  return at::kCPU;
}

/// In what a norm of such elements is summed; PyTorch's sums fp16 and bf16 in fp32 and rounds the norm to them.
SEALIFT_BODY at::ScalarType norm_dtype(at::ScalarType dtype) {
  return dtype == at::kDouble ? at::kDouble : at::kFloat;
}

/// The norms of rows of a gradient in host memory, 1-D. ATen adds a whole tensor up in as few sums as a register has
/// lanes: of 1e8 fp32 elements that are equal it loses 5.6 %, of normal ones 1.1 %. Rows of 1024 lose 6e-7, take 1.2 ms
/// for 1e7 elements as `_foreach_norm` does, and a fifth of what sums in double take (LibTorch 2.11, one core).
SEALIFT_BODY void add_host_norms(const at::Tensor& gradient, double norm_type, std::vector<at::Tensor>& norms) {
  constexpr std::int64_t kRow = 1024;
  const auto dtype = norm_dtype(gradient.scalar_type());
  // A conversion to fp32 is a copy; in parts it stays in the cache.
  const auto part = dtype == gradient.scalar_type() ? gradient.numel() : 256 * kRow;
  for (const auto& each : gradient.reshape({-1}).split(part)) {
    const auto rows = each.numel() / kRow;
    const auto add = [&](const at::Tensor& matrix) {
      norms.push_back(at::linalg_vector_norm(matrix, norm_type, {1}, false, dtype));
    };
    if (rows > 0) add(each.narrow(0, 0, rows * kRow).view({rows, kRow}));
    if (each.numel() > rows * kRow) add(each.narrow(0, rows * kRow, each.numel() - rows * kRow).view({1, -1}));
  }
}

/// The p-norm of all gradients of a kind on this rank, [1] in double on `device`. A norm of norms of parts is the norm
/// of the whole.
SEALIFT_BODY at::Tensor norm_here(const Batches& gradients, double norm_type, at::Device device) {
  std::vector<at::Tensor> parts;
  for (const auto& [key, batch] : gradients) {
    std::vector<at::Tensor> norms;
    if (batch.front().is_cpu()) {
      for (const auto& gradient : batch) add_host_norms(gradient, norm_type, norms);
      norms = {at::cat(norms)};
    } else {
      norms = {at::stack(at::_foreach_norm(batch, norm_type, norm_dtype(key.second)))};
    }
    parts.push_back(norms.front().to(device, at::kDouble));
  }
  if (parts.empty()) return torch::zeros({1}, torch::dtype(torch::kFloat64).device(device));
  return at::linalg_vector_norm(parts.size() == 1 ? parts.front() : at::cat(parts), norm_type).view({1});
}

}  // namespace detail

SEALIFT_BODY at::Tensor get_total_norm(Parallel& parallel, double norm_type) {
  TORCH_CHECK(norm_type > 0, "the norm type is ", norm_type, "; use 1, 2, infinity or another number above 0");
  at::NoGradGuard no_grad;
  auto& group = parallel.holders();
  const auto device = detail::exchange_device(parallel);
  detail::Batches sharded, replicated;
  for (const auto& parameter : parallel.parameters()) {
    const auto& gradient = parameter.shard.grad();
    const bool here = parameter.replicated || group.size() == 1;  // nobody else has a part
    if (gradient.defined() && gradient.numel() > 0) (here ? replicated : sharded).add(gradient);
  }
  if (group.size() == 1) return detail::norm_here(replicated, norm_type, device).squeeze();
  const auto mine = detail::norm_here(sharded, norm_type, device);
  // Gathered rather than summed: fits every norm type, and all ranks add up in the same order.
  auto all = mine.repeat({group.size()});
  group.all_gather(all, mine).wait();
  return at::linalg_vector_norm(at::cat({all, detail::norm_here(replicated, norm_type, device)}), norm_type);
}

SEALIFT_BODY double gradient_norm(Parallel& parallel, double norm_type) {
  return get_total_norm(parallel, norm_type).item<double>();
}

SEALIFT_BODY at::Tensor clip_grad_norm_(Parallel& parallel, double max_norm, double norm_type,
                                        bool error_if_nonfinite) {
  const auto norm = get_total_norm(parallel, norm_type);
  TORCH_CHECK(!error_if_nonfinite || std::isfinite(norm.item<double>()), "the gradient norm of order ", norm_type,
              " is ", norm.item<double>(),
              "; expected a finite one: find_nonfinite() names the parameter, or pass error_if_nonfinite = false");
  at::NoGradGuard no_grad;
  const auto scale = (max_norm / (norm + 1e-6)).clamp_max(1);
  // On a host the number is there, and a product with 1 is a pass over memory.
  if (scale.is_cpu() && scale.item<double>() == 1) return norm;
  detail::Batches gradients;
  for (const auto& [name, shard] : parallel.named_shards()) {
    if (shard.grad().defined()) gradients.add(shard.grad());
  }
  for (const auto& [key, batch] : gradients) {
    at::_foreach_mul_(batch, scale.to(batch.front().device(), detail::norm_dtype(key.second)));
  }
  return norm;
}

SEALIFT_BODY std::string NonFinite::message() const {
  auto text = c10::str("step ", step, ": ");
  if (loss) text += c10::str("the loss of rank ", rank, " is not finite", parameter ? "; " : "");
  if (parameter) {
    text += c10::str("the gradient of ", *parameter, " in ", unit.empty() ? "the root unit" : "unit " + unit,
                     " is not finite");
    if (!loss) text += c10::str(" on rank ", rank);
  }
  return text;
}

SEALIFT_BODY std::optional<NonFinite> find_nonfinite(Parallel& parallel, std::int64_t step, const at::Tensor& loss) {
  at::NoGradGuard no_grad;
  auto& world = parallel.groups().world;
  const auto& parameters = parallel.parameters();
  const auto device = detail::exchange_device(parallel);
  std::vector<at::Tensor> finite;  // of each parameter, then the loss; read together, so the device is waited for once
  const auto look_at = [&](const at::Tensor& tensor) {
    finite.push_back(tensor.defined() ? tensor.isfinite().all().to(device)
                                      : torch::ones({}, torch::dtype(torch::kBool).device(device)));
  };
  for (const auto& parameter : parameters) look_at(parameter.shard.grad());
  look_at(loss);
  const auto flags = at::stack(finite).cpu();
  const auto* begin = flags.const_data_ptr<bool>();
  const auto* end = begin + parameters.size();
  const auto mine =
      torch::tensor({std::int64_t{std::find(begin, end, false) - begin}, std::int64_t{!*end}}, torch::kInt64)
          .to(device);
  auto all = mine.repeat({world.size()});
  world.all_gather(all, mine).wait();
  all = all.cpu().view({-1, 2});

  const auto none = static_cast<std::int64_t>(parameters.size());
  NonFinite found{.step = step};
  std::int64_t first = none;
  for (std::int64_t rank = world.size() - 1; rank >= 0; --rank) {
    const auto index = all[rank][0].item<std::int64_t>();
    const bool bad_loss = all[rank][1].item<std::int64_t>() != 0;
    first = std::min(first, index);
    if (bad_loss || (!found.loss && index < none)) found.rank = rank;
    found.loss = found.loss || bad_loss;
  }
  if (first == none) return found.loss ? std::optional(found) : std::nullopt;

  found.parameter = parameters[static_cast<std::size_t>(first)].name;
  for (const auto& unit : parallel.units()) {
    // Units nest by path, so the unit with the longest path that is a prefix of the name holds the parameter.
    if (unit->path().size() > found.unit.size() && found.parameter->starts_with(unit->path() + ".")) {
      found.unit = unit->path();
    }
  }
  return found;
}

}  // namespace sealift::train
