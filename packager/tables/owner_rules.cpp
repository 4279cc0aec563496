// SPDX-License-Identifier: Apache-2.0
// Reads, writes and refuses [[owner]]; see owner_rules.hpp.
#include "packager/tables/owner_rules.hpp"

#include <fmt/format.h>

#include "sealift/bundle/core/fields.hpp"
#include "sealift/bundle/core/safe_path.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::size_t kMaxRules = 10'000;

OwnerRule read_rule(TomlTable& table) {
  OwnerRule rule;
  table.attempt([&] {
    rule.path = table.string("path");
    try {
      bundle::SafePath::parse_published(rule.path, "path");
    } catch (const Error& error) {
      table.refuse("path", error.facts().what, error.facts().expected, error.facts().got);
    }
  });
  table.attempt([&] {
    rule.package = table.string("package");
    if (!bundle::is_plain_name(rule.package))
      table.refuse("package", "this is not the name of a package", "like \"nvidia-nccl-cu13\"", rule.package);
  });
  table.done();
  rule.package = bundle::normalized_project_name(rule.package);
  return rule;
}

}  // namespace

std::vector<OwnerRule> read_owner_rules(TomlTable& document) {
  std::vector<OwnerRule> rules;
  std::set<std::string> paths;
  document.each("owner", [&](TomlTable& table) {
    if (rules.size() == kMaxRules) table.refuse("path", "there are too many rules", std::to_string(kMaxRules));
    rules.push_back(read_rule(table));
    if (!paths.insert(rules.back().path).second)
      table.refuse("path", "a path has two rules", "one owner", rules.back().path);
  });
  return rules;
}

std::string write_owner_rules(const std::vector<OwnerRule>& rules) {
  std::string out;
  for (const OwnerRule& rule : rules)
    out += fmt::format("\n[[owner]]\npath = {}\npackage = {}\n", toml_quoted(rule.path), toml_quoted(rule.package));
  return out;
}

std::string fault_line(const OwnerRule& rule, const std::string& why) {
  return fmt::format("\n    path = {}, package = {}: {}", toml_quoted(rule.path), toml_quoted(rule.package), why);
}

void refuse_owner_rules(const std::string& fault_lines) {
  throw Error(ErrorCode::Usage,
              {.what = "rules under [[owner]] do not fit the packages",
               .where = "[[owner]] of the job file",
               .expected = "a path that two packages have, and one of these packages; one rule for a path",
               .got = fault_lines,
               .next = "correct the job file and lock again"});
}

void require_packages(const std::vector<OwnerRule>& rules, const std::set<std::string>& packages) {
  std::string faults;
  for (const OwnerRule& rule : rules)
    if (!packages.contains(rule.package)) faults += fault_line(rule, "no such package is locked");
  if (!faults.empty()) refuse_owner_rules(faults);
}

}  // namespace sealift::packager
