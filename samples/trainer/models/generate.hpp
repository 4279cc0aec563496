// SPDX-License-Identifier: Apache-2.0
// Generation of a few samples between steps, to see what a training does: one prompt at a time, with a cache of keys
// and values. Called while `Parallel::gather_parameters` lives, or each token gathers every layer. For serving there
// are better programs.
#pragma once

#include "models/decoder.hpp"

namespace sealift::trainer {

struct GenerateOptions {
  std::int64_t max_tokens = 128;  ///< new ones
  double temperature = 0;         ///< 0: the likeliest token each time
  std::uint64_t seed = 0;         ///< of the draws; the same tokens on every rank
};

/// The tokens that follow `prompt`, up to and with one of the config's end tokens. In evaluation mode, without
/// gradients; under a sharding policy all ranks call it with the same arguments.
std::vector<std::int64_t> generate(train::Shardable<Decoder>& model, const std::vector<std::int64_t>& prompt,
                                   const GenerateOptions& options = {});

}  // namespace sealift::trainer
