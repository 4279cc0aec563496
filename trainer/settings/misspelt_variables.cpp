// SPDX-License-Identifier: Apache-2.0
// Names of variables against names of settings.
// See misspelt_variables.hpp.
#include "trainer/settings/misspelt_variables.hpp"

#include "bundle/core/foreign_text.hpp"
#include "sealift/nearest.hpp"
#include "trainer/settings/fine_tune_options.hpp"
#include "trainer/settings/options.hpp"
#include "trainer/settings/refuse.hpp"

#include <algorithm>
#include <string_view>

#include <unistd.h>

namespace sealift::trainer {
namespace {

constexpr std::string_view kOurs = "SEALIFT_TRAIN_", kProject = "SEALIFT_";

std::string in_letters(std::string text, int (*change)(int)) {
  std::transform(text.begin(), text.end(), text.begin(), [&](unsigned char c) { return static_cast<char>(change(c)); });
  return text;
}

/// What is said of the variable `name`; empty where there is nothing to say.
std::string problem_of(const std::string& name, const std::set<std::string>& known) {
  if (!name.starts_with(kProject)) return {};
  const auto shown = bundle::one_line(name);
  if (name.starts_with(kOurs)) {
    const auto setting = in_letters(name.substr(kOurs.size()), std::tolower);
    if (known.contains(setting)) return {};
    const auto near = nearest(setting, known);
    return shown + " is set, and is no setting" +
           (near.empty() ? "" : "; did you mean " + std::string(kOurs) + in_letters(near, std::toupper) + "?");
  }
  // The beginning itself may be misspelt: what follows the second word is then a setting's name.
  const auto second = name.find('_', kProject.size());
  if (second == std::string::npos) return {};
  const auto setting = in_letters(name.substr(second + 1), std::tolower);
  const auto begins = nearest(name.substr(0, second + 1), {std::string(kOurs)});
  if (begins.empty() || !known.contains(setting)) return {};
  return shown + " is set, and is no setting; did you mean " + std::string(kOurs) + name.substr(second + 1) + "?";
}

}  // namespace

std::vector<std::string> misspelt_variables(const char* const* variables, const std::set<std::string>& known) {
  std::vector<std::string> problems;
  for (; variables && *variables; ++variables) {
    const std::string_view variable = *variables;
    auto problem = problem_of(std::string(variable.substr(0, variable.find('='))), known);
    if (!problem.empty()) problems.push_back(std::move(problem));
  }
  std::sort(problems.begin(), problems.end());
  return problems;
}

void refuse_misspelt_variables() {
  std::set<std::string> known = {"python", "presets"};  // where made_tokens and find_preset look
  for (const auto& setting : settings()) known.insert(setting.name);
  for (const auto& setting : fine_tune_settings()) known.insert(setting.name);
  const auto problems = misspelt_variables(environ, known);
  if (problems.empty()) return;
  std::string text;
  for (const auto& problem : problems) text += problem + "\n";
  refuse(text + "rename the variable, or unset it; the verb's --help lists the settings");
}

}  // namespace sealift::trainer
