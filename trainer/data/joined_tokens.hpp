// SPDX-License-Identifier: Apache-2.0
// Several token files -> one, with their sequences in order.
// Before the first step of a job that names several; the loop knows one file.
// Written anew, as the scripts write one: a digest over all is what ranks and a resumed run compare.
#pragma once

#include <filesystem>
#include <vector>

namespace sealift::trainer {

/// Writes `out`, whole or not at all. std::invalid_argument where two differ in what they were made by.
void join_token_files(const std::vector<std::filesystem::path>& files, const std::filesystem::path& out);

}  // namespace sealift::trainer
