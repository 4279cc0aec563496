// SPDX-License-Identifier: Apache-2.0
// KTO: learning from single answers that are labelled good or bad, around the policy's distance from the reference.
// Two steps, because the distance is of the whole step: `kto_distance` here, a sum over ranks by the loop, `kto_loss`.
// Kahneman-Tversky Optimization, arXiv:2402.01306 eq. 7, with TRL's estimate of the distance (KTOTrainer).
#pragma once

#include "trainer/objectives/objective.hpp"

namespace sealift::trainer {

struct KtoOptions {
  double beta = 0.1;
  double desirable_weight = 1;
  double undesirable_weight = 1;
  bool distance = true;  ///< false: TRL's apo_zero_unpaired, which measures from 0 and needs no mismatched answers
};

/// Before the loss: the sum of log p - log p_ref over mismatched answers (each prompt with another example's answer)
/// and their number, [2] fp32 without a gradient. Sum it over ranks, then divide and clamp: `kto_distance_of`.
inline at::Tensor kto_distance_sums(const at::Tensor& policy, const at::Tensor& reference) {
  TORCH_CHECK(policy.dim() == 1 && policy.sizes() == reference.sizes(),
              "kto: mismatched answers' log-probabilities are ", policy.sizes(), " of the policy and ",
              reference.sizes(), " of the reference; expected one number each");
  const auto ratios = (policy - reference).detach().to(torch::kFloat32);
  return torch::stack({ratios.sum(), torch::full_like(ratios.sum(), static_cast<double>(ratios.numel()))});
}

/// max(0, mean) of the sums over all ranks, 0-dimensional: the z0 of the paper's eq. 7.
inline at::Tensor kto_distance_of(const at::Tensor& sums) {
  return (sums[0] / sums[1].clamp_min(1)).clamp_min(0);
}

/// The objective over answers: with r = log p - log p_ref, weight * (1 - σ(±beta (r - distance))), + for desirable
/// ones. `policy`, `reference` [answers] sums of log-probabilities, `desirable` [answers] bool; `distance`
/// 0-dimensional, not used where the options say so. `good`: how many are desirable, where the host knows, so that it
/// needs not wait for a device. Metrics as TRL's: rewards/… and logps/… by kind of answer, kl.
inline Objective kto_loss(const at::Tensor& policy, const at::Tensor& reference, const at::Tensor& desirable,
                          const at::Tensor& distance, const KtoOptions& options,
                          std::optional<std::int64_t> good = {}) {
  TORCH_CHECK(policy.sizes() == reference.sizes() && policy.sizes() == desirable.sizes() &&
                  desirable.scalar_type() == torch::kBool,
              "kto: expected log-probabilities of policy and reference and a bool for each answer; got ",
              policy.sizes(), ", ", reference.sizes(), ", ", desirable.sizes());
  const auto ratio = (policy - reference.detach()).to(torch::kFloat32);
  const auto kl = options.distance ? distance.detach().to(torch::kFloat32) : torch::zeros({}, ratio.options());
  const auto sign = torch::where(desirable, 1.0, -1.0).to(torch::kFloat32);
  const auto weight = torch::where(desirable, options.desirable_weight, options.undesirable_weight).to(torch::kFloat32);
  const auto losses = weight * (1 - torch::sigmoid(options.beta * sign * (ratio - kl)));

  const auto rewards = (options.beta * ratio).detach();
  const auto desired = good ? *good : desirable.sum().item<std::int64_t>(), all = policy.size(0);
  const auto of = [&](const char* name, const at::Tensor& values, bool which) -> Metric {
    const auto chosen = which ? desirable : ~desirable;
    return {name, values.detach().masked_fill(~chosen, 0).to(torch::kFloat32).sum(), which ? desired : all - desired};
  };
  return {.sum = losses.sum(),
          .count = all,
          .metrics = {of("rewards/chosen", rewards, true),
                      of("rewards/rejected", rewards, false),
                      of("logps/chosen", policy, true),
                      of("logps/rejected", policy, false),
                      {"kl", kl.clone(), 1}}};
}

}  // namespace sealift::trainer
