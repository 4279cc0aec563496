// SPDX-License-Identifier: Apache-2.0
// Variables of the environment that misspell a setting: SEALIFT_TRAIN_LERNING_RATE.
// Beside the tables of settings, which look up the variables that they know and never see another.
// Refused as an unknown key of a file is: a rate that is misspelt is another rate, and nobody notices.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace sealift::trainer {

/// What is said of those of `variables` ("NAME=value") that look like settings without being one; `known`: the names of
/// settings. Of a variable that begins otherwise only where a letter or two make it a known one.
std::vector<std::string> misspelt_variables(const char* const* variables, const std::set<std::string>& known);

/// Throws std::invalid_argument where this process has such variables. The settings of all verbs are known.
void refuse_misspelt_variables();

}  // namespace sealift::trainer
