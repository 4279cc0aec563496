// SPDX-License-Identifier: Apache-2.0
// What a config.json says of rotary position embedding, in any of the forms that transformers reads.
#pragma once

#include "trainer/models/config_keys.hpp"
#include "trainer/models/decoder_config.hpp"

namespace sealift::trainer {

/// `theta`: the family's base of the frequencies, where the file says none. Throws c10::Error as `ConfigKeys` does.
RopeConfig read_rope(ConfigKeys& top, double theta, std::int64_t max_positions);

}  // namespace sealift::trainer
