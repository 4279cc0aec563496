// SPDX-License-Identifier: Apache-2.0
// A Comparison for people and for machines: HTML and text in both languages, and JSON.
// Last in `diff`.
// What became worse comes first on every page.
#pragma once

#include "verify/verdict/compare.hpp"
#include "verify/wording/words.hpp"

#include <nlohmann/json.hpp>

namespace sealift::verify {

/// The two reports that were compared: their verdicts, and what the files are called.
struct Compared {
  const Verdict& before;
  const Verdict& after;
  std::string before_file, after_file;
};

std::string comparison_html(const Comparison& comparison, const Compared& compared, Language language);
std::string comparison_text(const Comparison& comparison, const Compared& compared, Language language);
nlohmann::ordered_json comparison_json(const Comparison& comparison);

}  // namespace sealift::verify
