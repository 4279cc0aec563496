// SPDX-License-Identifier: Apache-2.0
// The gradient norm of the whole model from the shards of all ranks, clipping by it, and the search for a gradient that
// is not finite.
// Called between backward and the optimizer's step, on the shards of a `Parallel`.
// A sharded element is on one rank of a shard group, a replicated one on all of them, and copies of a group are equal:
// so the norms of one shard group are combined, and replicated parameters are added to the result once.
#pragma once

#include <sealift/train/parallel.hpp>

#include <optional>

namespace sealift::train {

namespace detail {

/// The device for numbers that ranks exchange about their shards: an accelerator if any shard is on one.
inline at::Device exchange_device(const Parallel& parallel) {
  for (const auto& [name, shard] : parallel.named_shards()) {
    if (!shard.is_cpu()) return shard.device();
  }
  return at::kCPU;
}

/// The p-norm of `norms`, scalars in double; of none: 0. A norm of norms of parts is the norm of the whole.
inline at::Tensor combine_norms(const std::vector<at::Tensor>& norms, double norm_type, at::Device device) {
  if (norms.empty()) return torch::zeros({}, torch::dtype(torch::kFloat64).device(device));
  return at::linalg_vector_norm(at::stack(norms), norm_type);
}

/// Appends the p-norms of parts of `gradient`, scalars in double on `device`, to `norms`.
inline void add_norms(const at::Tensor& gradient, double norm_type, at::Device device, std::vector<at::Tensor>& norms) {
  if (!gradient.defined() || gradient.numel() == 0) return;
  // On a CPU the conversion to double is a copy; in parts it stays in the cache.
  constexpr std::int64_t kPart = std::int64_t{1} << 16;
  for (const auto& part : gradient.reshape({-1}).split(gradient.is_cpu() ? kPart : gradient.numel())) {
    norms.push_back(at::linalg_vector_norm(part, norm_type, {}, false, torch::kFloat64).to(device));
  }
}

}  // namespace detail

/// The `norm_type`-norm (any p > 0, also infinity) of all gradients as one vector, summed in double; the same number on
/// every rank. Shards without a gradient count as zero. Collective over the shard group.
inline double gradient_norm(Parallel& parallel, double norm_type = 2) {
  TORCH_CHECK(norm_type > 0, "the norm type is ", norm_type, "; use 1, 2, infinity or another number above 0");
  at::NoGradGuard no_grad;
  auto& group = parallel.groups().shard;
  const auto device = detail::exchange_device(parallel);
  std::vector<at::Tensor> sharded, whole;
  for (const auto& parameter : parallel.parameters()) {
    detail::add_norms(parameter.shard.grad(), norm_type, device, parameter.replicated ? whole : sharded);
  }
  const auto mine = detail::combine_norms(sharded, norm_type, device).reshape({1});
  // Gathered rather than summed: fits every norm type, and all ranks add up in the same order.
  auto all = mine.repeat({group.size()});
  group.all_gather(all, mine).wait();
  whole.push_back(at::linalg_vector_norm(all, norm_type));
  return detail::combine_norms(whole, norm_type, device).item<double>();
}

/// Multiplies all gradients by max_norm / (norm + 1e-6) where that is below 1, as torch.nn.utils.clip_grad_norm_ does;
/// returns the norm before clipping. If the norm is not finite it throws on all ranks with `error_if_nonfinite`, and
/// otherwise leaves gradients that are not finite either. Collective over the shard group.
inline double clip_grad_norm_(Parallel& parallel, double max_norm, double norm_type = 2,
                              bool error_if_nonfinite = false) {
  const double norm = gradient_norm(parallel, norm_type);
  TORCH_CHECK(!error_if_nonfinite || std::isfinite(norm), "the gradient norm of order ", norm_type, " is ", norm,
              "; expected a finite one: find_nonfinite() names the parameter, or pass error_if_nonfinite = false");
  const double scale = max_norm / (norm + 1e-6);
  if (scale >= 1) return norm;
  at::NoGradGuard no_grad;
  for (const auto& [name, shard] : parallel.named_shards()) {
    if (shard.grad().defined()) shard.grad().mul_(scale);
  }
  return norm;
}

/// What `find_nonfinite` found; the same on all ranks.
struct NonFinite {
  std::int64_t step = 0;  ///< as the caller gave it
  std::int64_t rank = 0;  ///< the lowest whose loss is not finite; without one, the lowest with such elements
  bool loss = false;      ///< that rank's loss is not finite: its input or its forward is the cause
  std::optional<std::string> parameter;  ///< the first with NaN or infinity in its gradient, in order of `parameters()`
  std::string unit;                      ///< path of the unit that holds it; empty: the root

  /// One line for a log.
  std::string message() const {
    auto text = c10::str("step ", step, ": ");
    if (loss) text += c10::str("the loss of rank ", rank, " is not finite", parameter ? "; " : "");
    if (parameter) {
      text += c10::str("the gradient of ", *parameter, " in ", unit.empty() ? "the root unit" : "unit " + unit,
                       " is not finite");
      if (!loss) text += c10::str(" on rank ", rank);
    }
    return text;
  }
};

/// Looks for NaN and infinity in the gradients and, if given, in this rank's `loss`; nothing when all are finite. A
/// reduced gradient does not tell whose batch is the cause, but the loss does. Waits for the device once per parameter,
/// so call it after a norm that is not finite, not in every step. Collective over the world.
inline std::optional<NonFinite> find_nonfinite(Parallel& parallel, std::int64_t step, const at::Tensor& loss = {}) {
  at::NoGradGuard no_grad;
  auto& world = parallel.groups().world;
  const auto& parameters = parallel.parameters();
  const auto is_finite = [](const at::Tensor& tensor) {
    return !tensor.defined() || tensor.isfinite().all().item<bool>();
  };
  const auto bad = std::find_if(parameters.begin(), parameters.end(),
                                [&](const auto& parameter) { return !is_finite(parameter.shard.grad()); });
  const auto mine =
      torch::tensor({std::int64_t{bad - parameters.begin()}, std::int64_t{!is_finite(loss)}}, torch::kInt64)
          .to(detail::exchange_device(parallel));
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
