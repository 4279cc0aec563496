// SPDX-License-Identifier: Apache-2.0
// How `compare` and `race` show a comparison: as a table or JSON on stdout, and as a page.
// Shared by two verbs, so that both take the same flags.
#pragma once

#include "bundle/core/foreign_text.hpp"
#include "bundle/host/command_line.hpp"
#include "trainer/compare/page.hpp"
#include "trainer/compare/shown.hpp"
#include "trainer/failure.hpp"
#include "trainer/json_numbers.hpp"

#include <fstream>

namespace sealift::trainer {

struct ShownAs {
  std::string lang = "en", page;
  bool json = false;
};

inline void add_shown(const bundle::Verb& verb, ShownAs& shown) {
  verb.option("--lang", shown.lang, "of the table and the page: en, zh").one_of({"en", "zh"});
  verb.option("--page", shown.page, "HTML file to draw the comparison in");
  verb.flag("--json", shown.json, "print as JSON");
}

/// The exit code: bad where losses of one job differ, or a run failed.
inline int show(const compare::Comparison& comparison, const std::string& title, const ShownAs& shown) {
  const auto language = plan::read_language(shown.lang);
  constexpr auto kReplace = nlohmann::json::error_handler_t::replace;  // a device's name or a folder's may be no UTF-8
  if (!shown.page.empty()) {
    std::ofstream file(shown.page, std::ios::binary);
    if (!(file << compare::page_of(comparison, title, language) << std::flush))
      throw std::invalid_argument("cannot write " + shown.page);
  }
  std::cout << (shown.json ? with_all_numbers(compare::json_of(comparison)).dump(1, ' ', false, kReplace) + "\n"
                           : bundle::terminal_text(compare::table_of(comparison, language)));
  bool good = !comparison.any_differs();
  for (const auto& run : comparison.runs) good = good && run.fault.empty();
  return good ? 0 : kBad;
}

}  // namespace sealift::trainer
