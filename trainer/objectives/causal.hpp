// SPDX-License-Identifier: Apache-2.0
// The causal language model's objective: -log p of every token that counts.
// For `sft` and `pretrain`: the model's [batch, time] log-probabilities in, a sum and its count of tokens out.
// Divided once, by all tokens of the step: a mean of means would weigh a token of a short answer more.
#pragma once

#include "trainer/models/token_batch.hpp"
#include "trainer/objectives/objective.hpp"

namespace sealift::trainer {

/// sum = -Σ log p(label), count = labels that count: after division Hugging Face's loss with `num_items_in_batch`.
/// `log_probs` [batch, time] as the model gives them with labels, 0 where a label is kNoLabel; `tokens`: how many
/// labels of this micro-batch count, as the batch says.
inline Objective causal_loss(const at::Tensor& log_probs, std::int64_t tokens) {
  return {.sum = -log_probs.to(torch::kFloat32).sum(), .count = tokens, .metrics = {}};
}

}  // namespace sealift::trainer
