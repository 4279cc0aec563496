// SPDX-License-Identifier: Apache-2.0
// Sums of a packed micro-batch's token values by sequence: log p(answer | prompt) of each, and how long each answer is.
// First step of every objective but the causal one; rows may hold several sequences, in any order.
// One index_add for all rows: its size is known on the host, so nothing waits for the device.
#pragma once

#include <torch/torch.h>

namespace sealift::trainer {

/// [sequences] fp32: for each sequence the sum of `values` [batch, time] over the tokens that `sequence` [batch, time]
/// (int64, below `sequences`; negative for padding) gives to it and that `counts` [batch, time] (bool) counts.
inline at::Tensor sequence_sums(const at::Tensor& values, const at::Tensor& sequence, const at::Tensor& counts,
                                std::int64_t sequences) {
  TORCH_CHECK(values.sizes() == sequence.sizes() && values.sizes() == counts.sizes(),
              "sums by sequence: values are of the shape ", values.sizes(), ", sequence numbers of ", sequence.sizes(),
              ", counts of ", counts.sizes(), "; expected one shape [batch, time]");
  TORCH_CHECK(counts.scalar_type() == torch::kBool, "counts must be bool, not ", counts.scalar_type());
  // The last sum takes what counts for nothing, so that there are no indices to select.
  const auto used = counts & (sequence >= 0);
  const auto index = sequence.masked_fill(~used, sequences);
  const auto kept = values.to(torch::kFloat32).masked_fill(~used, 0);
  return torch::zeros({sequences + 1}, kept.options())
      .index_add(0, index.flatten(), kept.flatten())
      .narrow(0, 0, sequences);
}

/// [sequences] fp32: how many tokens of each sequence are counted.
inline at::Tensor sequence_lengths(const at::Tensor& sequence, const at::Tensor& counts, std::int64_t sequences) {
  return sequence_sums(torch::ones_like(sequence, torch::kFloat32), sequence, counts, sequences);
}

}  // namespace sealift::trainer
