// SPDX-License-Identifier: Apache-2.0
// What a config.json says of Llama 4's layers: which see a chunk and turn, which see all and do not.
// Below decoder_config, which calls it for families that have them.
#pragma once

#include "trainer/models/config_keys.hpp"
#include "trainer/models/decoder_config.hpp"

namespace sealift::trainer {

/// Sets what `config` has of chunks, rotation and temperature; `layers` and `norm_eps` are read. Throws c10::Error as
/// `ConfigKeys` does.
void read_chunks(ConfigKeys& keys, DecoderConfig& config);

}  // namespace sealift::trainer
