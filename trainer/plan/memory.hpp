// SPDX-License-Identifier: Apache-2.0
// What one way to train a model takes on each rank, by part, and what a rank sends for it: counted, not guessed.
// Between model_shape and the table, `auto`, and the advice. Plays one step of the engine: gathers, operations,
// reductions.
// The parts are those at the moment when their sum is largest, so they add up to what a rank must have.
#pragma once

#include "trainer/plan/way.hpp"

namespace sealift::trainer::plan {

/// Bytes on one rank at the peak of a step, by what they are for. `host`: what offloading put into host memory, beside.
struct RankMemory {
  std::int64_t parameters = 0;   ///< shards or copies, as they are kept
  std::int64_t gradients = 0;    ///< of the optimizer's shards, and whole ones until they are reduced
  std::int64_t moments = 0;      ///< AdamW's two
  std::int64_t gathered = 0;     ///< units whose parameters are whole
  std::int64_t activations = 0;  ///< of forward, and their gradients
  std::int64_t logits = 0;       ///< a piece of them, and the head's gradient in fp32
  std::int64_t buffers = 0;      ///< of collectives
  std::int64_t slack = 0;        ///< what allocators keep beside
  std::int64_t host = 0;
  std::int64_t sum() const {
    return parameters + gradients + moments + gathered + activations + logits + buffers + slack;
  }
};

/// The peak of a step after the first. Peer of what tests measure; on Kernels::Cuda slack and the context are assumed.
RankMemory predict_memory(const ModelShape& shape, const Way& way);

/// Bytes that keeping units gathered between micro-batches would add, and whether a rank with `free` bytes keeps them
/// (the engine's choice where the job leaves it open; 0: unknown).
bool keep_fits(const ModelShape& shape, const Way& way, std::int64_t free);

}  // namespace sealift::trainer::plan
