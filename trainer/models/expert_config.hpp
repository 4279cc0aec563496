// SPDX-License-Identifier: Apache-2.0
// What a config.json says of experts: each family's own keys, as one ExpertConfig; and over how many ranks they go.
// Below decoder_config, which calls it for families that have experts.
#pragma once

#include "trainer/models/config_keys.hpp"
#include "trainer/models/decoder_config.hpp"

namespace sealift::trainer {

/// Of `layers` layers whose dense MLPs have `mlp_width`. Throws c10::Error as `ConfigKeys` does.
ExpertConfig read_experts(ConfigKeys& keys, const Family& family, std::int64_t layers, std::int64_t mlp_width);

/// Throws std::invalid_argument unless `ranks` can each keep as many experts of a layer. `setting` and `model` are for
/// the message. Before ranks meet: the engine's own refusal comes after, with a parameter's name.
void check_expert_ranks(const DecoderConfig& config, std::int64_t ranks, const std::string& setting,
                        const std::string& model);

}  // namespace sealift::trainer
