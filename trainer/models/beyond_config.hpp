// SPDX-License-Identifier: Apache-2.0
// Tensors of a model's folder that its config has no place for, which transformers leaves out: layers that predict
// further tokens, heads of values. Above weight_files; asked where a folder is read, and where a run says what it does.
#pragma once

#include "trainer/models/decoder_config.hpp"

#include <filesystem>
#include <string>

namespace sealift::trainer {

/// Whether a stored tensor is of a layer, or of a part beside the decoder, that the config does not have. One that a
/// layer of the config should not have, as a scale of quantized weights, is not.
bool is_beyond(const std::string& stored, const DecoderConfig& config);

/// A line that names such tensors of the folder; empty where there are none.
std::string beyond_config(const std::filesystem::path& folder, const DecoderConfig& config);

}  // namespace sealift::trainer
