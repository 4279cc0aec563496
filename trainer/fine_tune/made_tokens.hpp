// SPDX-License-Identifier: Apache-2.0
// The token file of a job's data: the named one, or one that is made of several, or of JSON lines, before the
// first step.
// Before the data is opened; a job of ms-swift names JSON lines, and so runs as it is.
// Rank 0 runs the scripts of `tokenize`, all wait, and ranks that do not see its folder run them too: for data of many
// gigabytes, call `tokenize` once before.
#pragma once

#include "trainer/settings/fine_tune_options.hpp"

#include <sealift/train.hpp>

namespace sealift::trainer {

/// `files` as one token file: itself if it is one, else `out`/tokens/`name`.tokens, joined of token files or made of
/// these files as `tokenize` reads them (docs/training_data.md), or `name`.rankN.tokens on a rank that does not see
/// rank 0's folder. Throws std::invalid_argument for a mixture. Collective.
std::string made_tokens(const std::vector<std::string>& files, const std::string& name, const FineTuneOptions& options,
                        train::Groups& world);

/// Adds texts to the lines of `samples`, a samples.jsonl, by the tokenizer of `model`; false, with a line on standard
/// error, where there is no Python that can.
bool add_texts(const std::filesystem::path& samples, const std::string& model);

}  // namespace sealift::trainer
