// SPDX-License-Identifier: Apache-2.0
// What a config.json says of latent attention (DeepSeek): the widths, how heads turn and how scores are scaled.
// Below decoder_config, which calls it for families that have it.
#pragma once

#include "trainer/models/config_keys.hpp"
#include "trainer/models/decoder_config.hpp"

namespace sealift::trainer {

/// Sets `latent` and `head_dim`; `heads` and `kv_heads` are read. Throws c10::Error as `ConfigKeys` does.
void read_latent(ConfigKeys& keys, DecoderConfig& config);

/// After `rope` is read: whether it is of neighbours, and the scale of scores with YaRN's part in it.
void finish_latent(ConfigKeys& keys, DecoderConfig& config);

}  // namespace sealift::trainer
