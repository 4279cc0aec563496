// SPDX-License-Identifier: Apache-2.0
// A comparison as people and programs read it: a table of text, JSON, and the words of both.
// Above comparison.hpp; page.hpp draws the same columns.
// A number that is not known is a dash, never zero.
#pragma once

#include "trainer/compare/comparison.hpp"

#include <nlohmann/json.hpp>

namespace sealift::trainer::compare {

/// "1.23 GiB", "12 MiB"
std::string bytes_text(double bytes);
/// Two significant digits: "3.1e-07".
std::string short_number(double value);
/// "1234"
std::string whole(double value);

/// What a column has: its heading in a language, and a run's cell.
struct Column {
  const char *english, *chinese;
  std::string (*cell)(const RunCost& run);
  std::optional<double> (*value)(const RunCost& run);  ///< what a bar shows; null: the column has none
  double whole = 0;                                    ///< what a whole bar is, of a share; 0: the most of the runs
};

/// The columns between a run's name and its losses.
const std::vector<Column>& columns();

/// The last cell: whether losses agree, or why nobody can say.
std::string words_of(const Agreement& agreement, const RunCost& run, plan::Language language);

/// The table and the advice, for a terminal.
std::string table_of(const Comparison& comparison, plan::Language language);

nlohmann::ordered_json json_of(const Comparison& comparison);

}  // namespace sealift::trainer::compare
