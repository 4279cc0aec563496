// SPDX-License-Identifier: Apache-2.0
// What an objective gives a step: a sum that is differentiated, what it is to be divided by, and what is logged.
// Between a model's log-probabilities and the loop; every objective returns this, so the loop knows none of them.
// Sums and counts instead of means: only then is a step over many ranks and micro-batches the step of one process.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

namespace sealift::trainer {

/// A mean that is not divided yet: what is logged is the sum over all ranks and micro-batches by the count over them.
struct Metric {
  std::string name;        ///< as TRL names it: rewards/chosen, logps/rejected …
  at::Tensor sum;          ///< 0-dimensional fp32 without a gradient
  std::int64_t count = 0;  ///< over how many answers (or pairs, or tokens); may be 0 on a rank
};

/// The step's loss is the sum of `sum` by the sum of `count`, both over all ranks and micro-batches: call backward() of
/// `sum` as it is, and give the total count to Parallel::set_gradient_divide_factor. Metrics are the same on all ranks
/// by number, name and order.
struct Objective {
  at::Tensor sum;          ///< 0-dimensional fp32
  std::int64_t count = 0;  ///< tokens for causal_loss, pairs or answers elsewhere
  std::vector<Metric> metrics;

  /// The loss of this micro-batch alone; NaN where count is 0.
  double mean() const { return sum.item<double>() / static_cast<double>(count); }
};

/// The mean of `values` as a metric; any shape, no gradient is kept.
inline Metric metric_of(std::string name, const at::Tensor& values) {
  return {std::move(name), values.detach().to(torch::kFloat32).sum(), values.numel()};
}

}  // namespace sealift::trainer
