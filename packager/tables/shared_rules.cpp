// SPDX-License-Identifier: Apache-2.0
// Reads, writes and refuses [[shared]]; see shared_rules.hpp.
#include "packager/tables/shared_rules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sealift/bundle/core/fields.hpp"
#include "sealift/bundle/core/safe_path.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::size_t kMaxSharedRules = 10'000;

SharedRule read_shared_rule(TomlTable& table) {
  SharedRule rule;
  table.attempt([&] {
    rule.package = table.string("package");
    if (!bundle::is_plain_name(rule.package))
      table.refuse("package", "this is not the name of a package", "like \"transformer-engine-cu12\"", rule.package);
  });
  table.attempt([&] {
    rule.into = table.string("into");
    try {
      bundle::SafePath::parse_published(rule.into, "into");
    } catch (const Error& error) {
      table.refuse("into", error.facts().what, error.facts().expected, error.facts().got);
    }
  });
  table.done();
  rule.package = bundle::normalized_project_name(rule.package);
  return rule;
}

}  // namespace

std::vector<SharedRule> read_shared_rules(TomlTable& document) {
  std::vector<SharedRule> rules;
  document.each("shared", [&](TomlTable& table) {
    if (rules.size() == kMaxSharedRules)
      table.refuse("package", "there are too many rules", std::to_string(kMaxSharedRules));
    const SharedRule rule = read_shared_rule(table);
    if (std::find(rules.begin(), rules.end(), rule) != rules.end())
      table.refuse("into", "a rule stands twice", "each once", rule.into);
    rules.push_back(rule);
  });
  return rules;
}

std::string write_shared_rules(const std::vector<SharedRule>& rules) {
  std::string out;
  for (const SharedRule& rule : rules)
    out += fmt::format("\n[[shared]]\npackage = {}\ninto = {}\n", toml_quoted(rule.package), toml_quoted(rule.into));
  return out;
}

std::string fault_line(const SharedRule& rule, const std::string& why) {
  return fmt::format("\n    package = {}, into = {}: {}", toml_quoted(rule.package), toml_quoted(rule.into), why);
}

void refuse_shared_rules(const std::string& fault_lines) {
  throw Error(ErrorCode::Usage,
              {.what = "rules under [[shared]] do not fit the packages",
               .where = "[[shared]] of the job file",
               .expected = "a locked package, and a folder of another one's package that it has files in",
               .got = fault_lines,
               .next = "correct the job file and lock again"});
}

void require_packages(const std::vector<SharedRule>& rules, const std::set<std::string>& packages) {
  std::string faults;
  for (const SharedRule& rule : rules)
    if (!packages.contains(rule.package)) faults += fault_line(rule, "no such package is locked");
  if (!faults.empty()) refuse_shared_rules(faults);
}

}  // namespace sealift::packager
