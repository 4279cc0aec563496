// SPDX-License-Identifier: Apache-2.0
// What a decoder is called with: tokens of one micro-batch, where they stand, and what each must predict.
// Made by `data/`, read by `models/`; objectives and the loop pass it on.
// Sequences may be packed into rows; segments then say which tokens may attend to each other.
#pragma once

#include "trainer/models/row_shape.hpp"

#include <torch/torch.h>

#include <optional>

namespace sealift::trainer {

struct TokenBatch {
  at::Tensor ids;        ///< [batch, time] int64
  at::Tensor positions;  ///< [batch, time] int64, from 0 in each sequence; undefined: 0, 1, 2 … in each row
  at::Tensor segments;  ///< [batch, time] int64: which sequence of its row a token belongs to, ascending from 0; -1 for
                        ///< padding. Undefined: each row is one sequence without padding
  at::Tensor labels;    ///< [batch, time] int64: the token that comes after this one (already shifted), or kNoLabel.
                        ///< Undefined: the model returns logits
  std::optional<RowShape> shape = {};  ///< of the rows, from the host; none: the model looks, and waits for a device
};

/// `batch` with its shape: to be asked for before the batch is moved to a device.
inline TokenBatch with_shape(TokenBatch batch) {
  if (!batch.shape) batch.shape = row_shape_of(batch.segments, batch.labels);
  return batch;
}

/// `tensor` on `device`, by a copy that the host doesn't wait for.
inline at::Tensor moved(const at::Tensor& tensor, at::Device device) {
  if (!tensor.defined() || tensor.device() == device) return tensor;
  const bool later = tensor.is_cpu() && !device.is_meta();
  return later ? tensor.pin_memory().to(device, /*non_blocking=*/true) : tensor.to(device);
}

/// All of `batch` on `device`, its shape looked at before.
inline TokenBatch to_device(TokenBatch batch, at::Device device) {
  batch = with_shape(std::move(batch));
  auto& shape = *batch.shape;
  for (auto* tensor :
       {&batch.ids, &batch.positions, &batch.segments, &batch.labels, &shape.starts, &shape.last, &shape.labelled}) {
    *tensor = moved(*tensor, device);
  }
  return batch;
}

}  // namespace sealift::trainer
