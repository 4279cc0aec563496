// SPDX-License-Identifier: Apache-2.0
// A language model's last step when labels are known: the log-probability of each label, without the logits.
// `Decoder` calls it; objectives are functions of what it returns.
// The logits of a long batch over 152 000 entries are the real out-of-memory, so tokens are taken a few at a time. What
// backward needs is made in forward where that is possible, since computing logits again costs a third more.
// Mirrored by trainer/plan/decoder_tape.cpp: change both.
#pragma once

#include "trainer/models/row_shape.hpp"

#include <torch/torch.h>

#include <optional>

namespace sealift::trainer {

/// Most elements of logits that are held at a time, forward or backward; in fp32, and once more in the head's dtype if
/// that is another.
inline constexpr std::int64_t kLogitsAtATime = std::int64_t{1} << 26;

/// What one backward tells the next forward. A gradient of the head sums over tokens, weighted by what the loss says of
/// each. Under a mean over tokens all weights are one number, so forward can make the sum and backward scales it; a
/// loss that weights its tokens shows in the first backward, and from then on logits are computed again.
struct TokenWeights : torch::CustomClassHolder {
  bool are_equal = true;
};

/// log softmax(hidden · weightᵀ)[label] of each token: fp32, of `labels`' shape, and 0 where the label is kNoLabel.
/// hidden [..., width], weight [vocabulary, width] of the same dtype, labels [...] int64. Softmax and sums are fp32.
/// `weights` is kept by the model, one for each head; without one logits are computed again. `shape`: of the batch,
/// which says what has a label; without it the labels are looked at, for which a device is waited for. A loss that is
/// the sum of all of it, times a number, is known to weigh all alike by the strides of its gradient; on a device other
/// gradients are taken for unequal ones without a look. `cap`: above 0, cap * tanh(logit / cap) stands for each logit.
at::Tensor label_log_probabilities(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& labels,
                                   std::int64_t logits_at_a_time = kLogitsAtATime,
                                   const c10::intrusive_ptr<TokenWeights>& weights = {},
                                   const std::optional<RowShape>& shape = {}, double cap = 0);

}  // namespace sealift::trainer
