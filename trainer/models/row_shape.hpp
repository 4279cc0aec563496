// SPDX-License-Identifier: Apache-2.0
// What the host knows of a batch's rows before they are on a device: where sequences begin and end, which tokens have a
// label. Made by `data/` beside the tensors; attention, the head and the loss's last step read it.
// To ask a device for it would make the host wait for the device in each step.
#pragma once

#include <torch/torch.h>

namespace sealift::trainer {

/// A label that counts for nothing, as in PyTorch's cross_entropy and Hugging Face's data.
inline constexpr std::int64_t kNoLabel = -100;

/// The numbers of tokens are those in the flattened batch. Tensors lie where the batch's do.
struct RowShape {
  bool padded_behind = true;  ///< each row is one sequence and then padding only: causal order says who sees whom
  at::Tensor starts;          ///< int32 [sequences + 1]: each sequence's first token, padding being one, and the end;
                              ///< undefined where `padded_behind`
  std::int64_t longest = 0;   ///< tokens of the longest of them
  at::Tensor last;            ///< int64: the last token of each sequence, padding aside; undefined without segments
  at::Tensor labelled;        ///< int64: the tokens that have a label; undefined: all
};

/// Of `segments` and `labels` [batch, time] as TokenBatch has them, each of which may be undefined. Tensors on another
/// device are fetched, which waits for it; without values (meta) each row is one sequence and has all labels.
RowShape row_shape_of(const at::Tensor& segments, const at::Tensor& labels);

}  // namespace sealift::trainer
