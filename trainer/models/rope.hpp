// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding: the tables of a batch's positions, and the rotation of queries and keys by them.
// The decoder makes the tables once in a forward; every attention rotates by them.
// Tables are fp32 and no buffers, so that no precision of a policy casts them; a rotation keeps only the tables for its
// backward, which is the rotation the other way.
// Mirrored by trainer/plan/decoder_tape.cpp: change both.
#pragma once

#include "trainer/models/decoder_config.hpp"

#include <torch/torch.h>

namespace sealift::trainer {

/// One entry for each pair of a head's elements that turns: fp32 [batch or 1, time, 1, pairs]. Elements behind these
/// pairs do not turn.
struct RopeTables {
  at::Tensor cos, sin;
  bool by_neighbours = false;  ///< a pair is two neighbours, not one of each half
};

class Rope {
 public:
  Rope(const RopeConfig& config, std::int64_t head_dim, std::int64_t max_positions);

  /// `positions`: [batch or 1, time] int64. With dynamic and long scaling the longest position of the batch sets the
  /// frequencies.
  RopeTables tables(const at::Tensor& positions) const;

 private:
  RopeConfig config_;
  std::int64_t turned_, max_positions_;
  at::Tensor exponents_;            ///< 0, 2 / turned, 4 / turned … in fp32
  mutable at::Tensor frequencies_;  ///< radians a position [turned / 2], where they were needed last
  mutable at::Tensor beyond_;       ///< long: the same for batches that are longer than the context of pretraining
  double scale_ = 1;                ///< of the tables (yarn, long)
};

/// Queries and keys [batch, time, heads, head_dim] turned by the tables, in their own dtype; in the same operations
/// where they lie side by side.
std::tuple<at::Tensor, at::Tensor> rotate(const at::Tensor& queries, const at::Tensor& keys, const RopeTables& tables);

}  // namespace sealift::trainer
