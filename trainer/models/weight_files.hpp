// SPDX-License-Identifier: Apache-2.0
// Which files of a model's folder have its weights, as transformers chooses them, and whether they are this model's.
// Below hf_folder, before anything is read; headers alone are looked at, and of a tied head its values.
// Each refusal names the cause: a list of all names that are missing tells nobody that a wrapper was saved.
#pragma once

#include "trainer/models/decoder_config.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace sealift::trainer {

/// model.safetensors where it is, else the folder, whose index names the files: of two sets transformers takes the
/// first.
std::filesystem::path weights_of(const std::filesystem::path& folder);

/// The shapes of the stored tensors by name. Throws where the index names a file that is not there.
std::map<std::string, std::vector<std::int64_t>> stored_shapes(const std::filesystem::path& folder);

/// Throws naming the cause where there are no weights, where the tensors are another program's wrapper of the model, or
/// where its embedding or head has other rows than config.json says.
void check_weights(const std::filesystem::path& folder, const DecoderConfig& config);

/// Whether a config that ties the head has weights that do not: a head is stored beside the embedding and differs from
/// it. transformers then keeps both.
bool stores_own_head(const std::filesystem::path& folder, const DecoderConfig& config);

/// A SHA-256 by which a base is known, wherever it lies: of each tensor's name, dtype and shape, and of 64 bytes at its
/// begin, middle and end. Another training of the same model changes those of every tensor that it trained. Empty where
/// there are no weights.
std::string weights_digest(const std::filesystem::path& folder);

}  // namespace sealift::trainer
