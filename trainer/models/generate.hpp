// SPDX-License-Identifier: Apache-2.0
// Generation of a few samples between steps, to see what a training does: one prompt at a time, with a cache of keys
// and values. Called while `Parallel::gather_parameters` lives, or each token gathers every layer. For serving there
// are better programs.
#pragma once

#include "trainer/models/decoder.hpp"

namespace sealift::trainer {

struct GenerateOptions {
  std::int64_t max_tokens = 128;  ///< new ones
  double temperature = 0;         ///< 0: the likeliest token each time
  std::uint64_t seed = 0;         ///< of the draws
  /// Ranks that answer together, as those of a spread model must: all take the token that the first of them chose.
  /// Rounding differs with the rows that experts get from other ranks, and with machines; ranks that went on with
  /// tokens of their own would end at different ones, and wait for each other without end.
  train::Collectives ranks = {};
};

/// The tokens that follow `prompt`, up to and with one of the config's end tokens. In evaluation mode, without
/// gradients; where the model is spread over ranks, all call it with the same prompt and those `ranks`.
std::vector<std::int64_t> generate(train::Shardable<Decoder>& model, const std::vector<std::int64_t>& prompt,
                                   const GenerateOptions& options = {});

}  // namespace sealift::trainer
