// SPDX-License-Identifier: Apache-2.0
// The gradient norm of the whole model from what each rank holds of it, and clipping by it.
// Called between backward and the optimizer's step, on the shards of a `Parallel`.
// Every element is on exactly one rank of a shard group and replicas are equal, so the shard group alone is summed
// over.
#pragma once

#include <sealift/train/parallelize.hpp>

namespace sealift::train {

/// The 2-norm of all gradients, summed in double; the same number on every rank. Collective over the shard group.
inline double gradient_norm(Parallel& parallel) {
  at::NoGradGuard no_grad;
  auto squares = torch::zeros({1}, torch::kFloat64);
  for (const auto& [name, shard] : parallel.named_shards()) {
    if (shard.grad().defined()) squares += at::linalg_vector_norm(shard.grad(), 2, {}, false, torch::kFloat64).square();
  }
  parallel.groups().shard.all_reduce(squares).wait();
  return squares.sqrt().item<double>();
}

/// Scales all gradients so that their 2-norm is at most `max_norm`; returns the norm before. Collective.
inline double clip_grad_norm_(Parallel& parallel, double max_norm) {
  const double norm = gradient_norm(parallel);
  if (norm <= max_norm) return norm;
  at::NoGradGuard no_grad;
  for (const auto& [name, shard] : parallel.named_shards()) {
    if (shard.grad().defined()) shard.grad().mul_(max_norm / norm);
  }
  return norm;
}

}  // namespace sealift::train
