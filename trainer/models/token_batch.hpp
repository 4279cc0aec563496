// SPDX-License-Identifier: Apache-2.0
// What a decoder is called with: tokens of one micro-batch, where they stand, and what each must predict.
// Made by `data/`, read by `models/`; objectives and the loop pass it on.
// Sequences may be packed into rows; segments then say which tokens may attend to each other.
#pragma once

#include <torch/torch.h>

namespace sealift::trainer {

/// A label that counts for nothing, as in PyTorch's cross_entropy and Hugging Face's data.
inline constexpr std::int64_t kNoLabel = -100;

struct TokenBatch {
  at::Tensor ids;        ///< [batch, time] int64
  at::Tensor positions;  ///< [batch, time] int64, from 0 in each sequence; undefined: 0, 1, 2 … in each row
  at::Tensor segments;  ///< [batch, time] int64: which sequence of its row a token belongs to, ascending from 0; -1 for
                        ///< padding. Undefined: each row is one sequence without padding
  at::Tensor labels;    ///< [batch, time] int64: the token that comes after this one (already shifted), or kNoLabel.
                        ///< Undefined: the model returns logits
};

}  // namespace sealift::trainer
