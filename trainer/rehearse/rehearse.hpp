// SPDX-License-Identifier: Apache-2.0
// One rank of a job that does not run: the real engine on a device without memory, among ranks that do not exist.
// For `sealift-train rehearse`: what a job would gather, reduce, hold and save on N ranks, known before it is queued.
// The engine is run and not modelled, so what would fail there fails here, in its words.
#pragma once

#include "trainer/models/decoder.hpp"
#include "trainer/rehearse/meta_room.hpp"
#include "trainer/rehearse/other_ranks.hpp"
#include "trainer/rehearse/rehearsal.hpp"

namespace sealift::trainer {

struct RehearsalOptions {
  std::filesystem::path model;  ///< a folder with config.json, or such a file; no weights are read
  train::Policy policy;
  std::int64_t ranks = 1, rank = 0;
  std::int64_t expert_ranks = 1;                            ///< ranks that divide the experts of a layer
  std::int64_t rows = 1, tokens = 2048, micro_batches = 1;  ///< of a rank; every token is trained on
  bool recompute = true;                                    ///< layers' activations in backward
  at::ScalarType parameters = at::kFloat;                   ///< dtype in which they are kept
  double max_grad_norm = 1;                                 ///< 0: no norm is computed
  bool checks_order = true;  ///< ranks compare what they are about to issue, as the engine does by default
  /// What is trained, where that is not all of it: adds adapters, says what is kept quantized.
  std::function<void(DecoderImpl&, train::Policy&)> adapt = {};
  std::int64_t memory = 0;  ///< bytes of a rank's device; 0: unlimited
  Imitated imitated = Imitated::Cuda;
  Limits limits = {};
};

/// Runs the job's start, its first step and one more as rank `options.rank`. Throws what the engine throws.
Rehearsal rehearse(const RehearsalOptions& options);

}  // namespace sealift::trainer
