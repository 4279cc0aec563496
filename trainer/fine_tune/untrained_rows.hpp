// SPDX-License-Identifier: Apache-2.0
// Tokens of the data whose rows of the embedding or head look as if nobody had trained them, where these are frozen:
// adapters then learn around noise, and nothing of the loss says so.
// Said when a run begins. Rows that a resize filled with random numbers of the usual size cannot be told from trained.
#pragma once

#include "trainer/data/token_file.hpp"
#include "trainer/models/decoder_config.hpp"
#include "trainer/tuning/lora.hpp"

#include <sealift/train.hpp>

namespace sealift::trainer {

/// One line that names them, and the way on; empty where there are none. Of the tokens that the tokenizer of `model`
/// adds, those in the first thousand sequences are looked at: a row is as good as untrained where it is far shorter
/// than others, next to their mean (as transformers fills new rows), or another such token's. Reads some rows of
/// `base`.
std::string untrained_rows(const TokenFile& data, const std::filesystem::path& model, const DecoderConfig& config,
                           const LoraOptions& lora, train::Source& base);

}  // namespace sealift::trainer
