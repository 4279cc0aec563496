// SPDX-License-Identifier: Apache-2.0
// The line's parts, in both languages.
// See statement.hpp.
// Names of checks are the same in both, and are cut off: the first page has all of them.
#include "verify/wording/statement.hpp"

#include "verify/wording/texts.hpp"

#include <algorithm>

namespace sealift::verify {
namespace {

constexpr std::size_t kMostInLine = 6;

std::string names_of_checks(const std::vector<std::string>& checks, Language language) {
  const bool english = language == Language::English;
  std::string text;
  for (std::size_t i = 0; i < std::min(checks.size(), kMostInLine); ++i) {
    text += (i == 0 ? "" : english ? ", " : "、") + one_line(shortened(checks[i], 100));
  }
  if (checks.size() <= kMostInLine) return text;
  return text + (english ? ", " : "、") +
         filled(Word::AndMoreChecks, language, {std::to_string(checks.size() - kMostInLine)});
}

}  // namespace

std::string reservation(const Verdict& verdict, Language language) {
  if (outcome_of(verdict) != Outcome::Pass) return {};
  const auto [asked, unasked] = not_run(verdict);
  std::string text;
  if (!asked.empty()) {
    text = filled(asked.size() == 1 ? Word::WithOneNotRun : Word::WithNotRun, language,
                  {std::to_string(asked.size()), names_of_checks(asked, language)});
  }
  if (unasked.empty()) return text;
  if (!text.empty()) text += language == Language::English ? "; " : "；";
  return text + filled(Word::WithUnasked, language, {std::to_string(unasked.size())});
}

std::string statement(const Verdict& verdict, Language language) {
  const auto outcome = word(outcome_of(verdict), language), open = reservation(verdict, language);
  return open.empty() ? outcome : outcome + (language == Language::English ? ", " : "，") + open;
}

}  // namespace sealift::verify
