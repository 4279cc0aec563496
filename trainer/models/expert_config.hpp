// SPDX-License-Identifier: Apache-2.0
// What a config.json says of experts: each family's own keys, as one ExpertConfig.
// Below decoder_config, which calls it for families that have experts.
#pragma once

#include "trainer/models/config_keys.hpp"
#include "trainer/models/decoder_config.hpp"

namespace sealift::trainer {

/// Of `layers` layers whose dense MLPs have `mlp_width`. Throws c10::Error as `ConfigKeys` does.
ExpertConfig read_experts(ConfigKeys& keys, const Family& family, std::int64_t layers, std::int64_t mlp_width);

}  // namespace sealift::trainer
