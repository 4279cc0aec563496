// SPDX-License-Identifier: Apache-2.0
// Reads and writes [[startup]]; see startup_rules.hpp.
#include "packager/tables/startup_rules.hpp"

#include <fmt/format.h>

#include "sealift/bundle/core/fields.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace {

constexpr std::size_t kMaxStartupRules = 1000;

StartupRule read_startup_rule(TomlTable& table) {
  std::string package;
  std::optional<bundle::Digest> digest;
  table.attempt([&] {
    package = table.string("package");
    if (!bundle::is_plain_name(package))
      table.refuse("package", "this is not the name of a package", "like \"nvidia-cutlass-dsl\"", package);
  });
  table.attempt([&] {
    const std::string text = table.string("sha256");
    digest = bundle::Digest::from_hex(text);
    if (!digest) table.refuse("sha256", "this is not a SHA-256", "64 lower-case hexadecimal digits", text);
  });
  table.done();
  return {.package = bundle::normalized_project_name(package), .sha256 = *digest};
}

}  // namespace

std::vector<StartupRule> read_startup_rules(TomlTable& document) {
  std::vector<StartupRule> rules;
  std::set<bundle::Digest> digests;
  document.each("startup", [&](TomlTable& table) {
    if (rules.size() == kMaxStartupRules)
      table.refuse("package", "there are too many rules", std::to_string(kMaxStartupRules));
    rules.push_back(read_startup_rule(table));
    if (!digests.insert(rules.back().sha256).second)
      table.refuse("sha256", "a start-up file is allowed twice", "one rule for it", rules.back().sha256.hex());
  });
  return rules;
}

std::string write_startup_rules(const std::vector<StartupRule>& rules) {
  std::string out;
  for (const StartupRule& rule : rules)
    out += fmt::format("\n[[startup]]\npackage = {}\nsha256 = {}\n", toml_quoted(rule.package),
                       toml_quoted(rule.sha256.hex()));
  return out;
}

std::set<bundle::Digest> allowed_files(const std::vector<StartupRule>& rules, const std::string& package) {
  std::set<bundle::Digest> digests;
  for (const StartupRule& rule : rules)
    if (rule.package == bundle::normalized_project_name(package)) digests.insert(rule.sha256);
  return digests;
}

}  // namespace sealift::packager
