// SPDX-License-Identifier: Apache-2.0
// The reward model's objective: the preferred answer's score above the other's, by a margin where the data has one.
// Scores of each sequence's last token in, an Objective over pairs out.
// Bradley-Terry as in InstructGPT (arXiv:2203.02155 eq. 1), margin as in Llama 2 (arXiv:2307.09288 eq. 2).
#pragma once

#include "trainer/objectives/objective.hpp"

namespace sealift::trainer {

struct RewardOptions {
  double center_coefficient = 0;  ///< of (chosen + rejected)², which keeps scores around 0 (arXiv:2312.09244 §2)
};

/// sum = Σ -log σ(chosen - rejected - margin) + c Σ (chosen + rejected)². `scores` [2 * pairs], chosen before rejected;
/// `margins` [pairs] or undefined. Metrics: accuracy, margin, mean_reward.
inline Objective reward_loss(const at::Tensor& scores, const at::Tensor& margins = {},
                             const RewardOptions& options = {}) {
  TORCH_CHECK(scores.dim() == 1 && scores.size(0) % 2 == 0, "a batch of pairs has 2 * pairs scores; got ",
              scores.sizes());
  const auto pairs = scores.to(torch::kFloat32).view({-1, 2});
  const auto chosen = pairs.select(1, 0), rejected = pairs.select(1, 1);
  TORCH_CHECK(!margins.defined() || margins.sizes() == chosen.sizes(), "margins are of the shape ", margins.sizes(),
              "; expected one for each of ", chosen.sizes(), " pairs");
  const auto difference = chosen - rejected;
  auto sum = -torch::log_sigmoid(margins.defined() ? difference - margins : difference).sum();
  if (options.center_coefficient != 0) sum = sum + options.center_coefficient * (chosen + rejected).square().sum();
  return {.sum = sum,
          .count = chosen.size(0),
          .metrics = {metric_of("accuracy", chosen > rejected), metric_of("margin", difference),
                      metric_of("mean_reward", scores)}};
}

}  // namespace sealift::trainer
