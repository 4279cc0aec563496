// SPDX-License-Identifier: Apache-2.0
// `sealift-train run`: train the sample model as one rank of a world, and say what it computed.
// Middle of the flow: options and a launch come in, result.json's content leaves.
// The world is the caller's, so that it is still connected when an error is reported and peers see this rank go, not
// hang.
#pragma once

#include "options.hpp"

#include <sealift/train.hpp>

#include <nlohmann/json.hpp>

#include <optional>

namespace sealift::trainer {

/// Trains; rank 0 writes log.jsonl and result.json into `options.out`. Every rank returns the result. `world` is filled
/// with this rank's connections.
nlohmann::ordered_json run(const Options& options, const train::Launch& launch, std::optional<train::Groups>& world);

}  // namespace sealift::trainer
