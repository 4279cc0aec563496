// SPDX-License-Identifier: Apache-2.0
// `sealift-train run`: trains the sample model as one rank of a world, and returns what it computed.
// Middle of the flow: options and a launch in, the content of result.json out.
// The world is the caller's, so that it is still connected when an error is reported, and peers see this rank end
// instead of hang.
#pragma once

#include "trainer/settings/options.hpp"

#include <sealift/train.hpp>

#include <nlohmann/json.hpp>

#include <optional>

namespace sealift::trainer {

/// Trains; rank 0 writes log.jsonl and result.json into `options.out`. Every rank returns the result. `world` is filled
/// with this rank's connections.
nlohmann::ordered_json run(const Options& options, const train::Launch& launch, std::optional<train::Groups>& world);

}  // namespace sealift::trainer
