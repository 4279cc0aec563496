// SPDX-License-Identifier: Apache-2.0
// `sealift-train sft|dpo|kto|reward|pretrain`: trains a Hugging Face model as one rank of a world, and returns what it
// computed. Middle of the flow: options and a launch in; an adapter or a model on disk, and the content of result.json,
// out. The world is the caller's, so that it is still connected when an error is reported.
#pragma once

#include "trainer/settings/fine_tune_options.hpp"

#include <sealift/train.hpp>

#include <nlohmann/json.hpp>

#include <optional>

namespace sealift::trainer {

/// Trains; rank 0 writes log.jsonl, result.json and what was trained into `options.out`. Every rank returns the result.
/// `world` is filled with this rank's connections.
nlohmann::ordered_json fine_tune(const FineTuneOptions& options, const train::Launch& launch,
                                 std::optional<train::Groups>& world);

/// What the job would do in a world of so many ranks: steps, rows, learning rates. Reads the data and config.json.
nlohmann::ordered_json describe(const FineTuneOptions& options, std::int64_t world_size);

}  // namespace sealift::trainer
