// SPDX-License-Identifier: Apache-2.0
// The token that ends the answers of the data, and whether the model's folder knows it as an end.
// When a result is saved: a base model that is trained on chats keeps the base's end token, and so would never stop.
// Told by the data, since the template that they were rendered with need not be the model's.
#pragma once

#include "trainer/data/token_file.hpp"

#include <filesystem>
#include <optional>

namespace sealift::trainer {

/// The special token, of the tokenizer of `model`, that is the last or last but one which is learned of each of the
/// first thousand sequences; nothing where they end in other ways.
std::optional<std::int64_t> trained_end(const TokenFile& data, const std::filesystem::path& model);

/// Whether the data were rendered with a chat template, and the folder of the model has none.
bool lacks_template(const TokenFile& data, const std::filesystem::path& model);

}  // namespace sealift::trainer
