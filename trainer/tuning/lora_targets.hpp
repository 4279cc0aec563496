// SPDX-License-Identifier: Apache-2.0
// Which projections of a model get adapters, and of which rank: names, expressions, layers and patterns, as PEFT's.
// Above the options, below lora.cpp, which adds the adapters.
#pragma once

#include "trainer/models/projection.hpp"
#include "trainer/tuning/lora_options.hpp"

namespace sealift::trainer {

/// What follows the last dot of `path`.
std::string last_part(const std::string& path);

/// Whether `path` is `name`, or ends in a dot and it.
bool names_path(const std::string& name, const std::string& path);

/// The projections that `options` names, in the order of the model; throws when a name matches none of them, or all
/// names together none.
std::vector<std::pair<std::string, ProjectionImpl*>> find_targets(torch::nn::Module& model, const LoraOptions& options);

/// `options` with the rank and alpha of the projection at `path`.
LoraOptions options_at(const LoraOptions& options, const std::string& path);

}  // namespace sealift::trainer
