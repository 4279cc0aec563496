// SPDX-License-Identifier: Apache-2.0
// The table in words, English or Chinese: what to take, and which numbers say so.
// Above table; printed below it.
// Each line names the rows that it compares, so that a rule of thumb is never all that there is.
#pragma once

#include "trainer/plan/table.hpp"

namespace sealift::trainer::plan {

enum class Language { English, Chinese };

/// "en" or "zh". Throws std::invalid_argument.
Language read_language(const std::string& name);

/// What the fastest row of each tuner is and why it is not another method; what accumulating, recomputing or offloading
/// buys. At least one line.
std::vector<std::string> advice(const std::vector<Row>& rows, const Question& question, Language language);

}  // namespace sealift::trainer::plan
