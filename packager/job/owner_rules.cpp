// SPDX-License-Identifier: Apache-2.0
// See owner_rules.hpp. Rules choose only between wheels: files of the interpreter or of a program belong to no package
// that a rule could name.
#include "packager/job/owner_rules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sealift/bundle/core/fields.hpp"
#include "sealift/bundle/core/safe_path.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::size_t kMaxRules = 10'000;

OwnerRule read_rule(TomlTable& table) {
  OwnerRule rule{.path = table.string("path"), .package = table.string("package")};
  try {
    bundle::SafePath::parse(rule.path, "path");
  } catch (const Error& error) {
    table.refuse("path", error.facts().what, error.facts().expected, error.facts().got);
  }
  if (!bundle::is_plain_name(rule.package))
    table.refuse("package", "this is not the name of a package", "like \"nvidia-nccl-cu13\"", rule.package);
  rule.package = bundle::normalized_project_name(rule.package);
  table.done();
  return rule;
}

bool covers(std::string_view rule, std::string_view path) {
  return path.starts_with(rule) && (path.size() == rule.size() || path[rule.size()] == '/');
}

// The package of a wheel; empty for the interpreter, programs and models.
std::string package_of(const std::string& owner) {
  const auto wheel = owner.ends_with(".whl") ? bundle::parse_wheel_name(owner) : std::nullopt;
  return wheel ? bundle::normalized_project_name(wheel->name) : "";
}

std::string complaint(const OwnerRule& rule, const std::string& why) {
  return fmt::format("\n    path = {}, package = {}: {}", toml_quoted(rule.path), toml_quoted(rule.package), why);
}

[[noreturn]] void refuse(const std::string& faults) {
  throw Error(ErrorCode::Usage,
              {.what = "rules under [[owner]] do not fit the packages",
               .where = "[[owner]] of the job file",
               .expected = "a path that two packages have, and one of these packages; one rule for a path",
               .got = faults,
               .next = "correct the job file and lock again"});
}

class Settlement {
 public:
  Settlement(PathOwners& owners, const std::string& site_packages) : owners_(owners), site_(site_packages + "/") {}

  void apply(const OwnerRule& rule) {
    const std::size_t before = faults_.size();
    bool used = false;
    for (const PathOwners::Contested& contested : owners_.contested()) {
      if (!decides(rule, contested.path)) continue;
      used = true;
      decide(rule, contested);
      if (faults_.size() > before) return;  // one complaint a rule
    }
    if (!used) complain(rule, "no path there has two owners, so there is nothing to decide");
  }

  LeftOut take() {
    LeftOut left_out;
    for (const PathOwners::Contested& contested : owners_.contested())
      if (contested.equal) winners_.emplace(contested.path, contested.owners.front());
    for (const auto& [path, winner] : winners_) {
      for (const std::string& loser : owners_.give(path, winner)) left_out[loser].insert(path);
    }
    if (faults_.empty()) return left_out;
    try {
      owners_.check();
    } catch (const Error& collisions) {
      faults_ += "\n  and no valid rule decides" + collisions.facts().got;
    }
    refuse(faults_);
  }

 private:
  bool decides(const OwnerRule& rule, std::string_view path) const {
    return covers(rule.path, path) || (path.starts_with(site_) && covers(rule.path, path.substr(site_.size())));
  }

  void decide(const OwnerRule& rule, const PathOwners::Contested& contested) {
    const auto owner = std::find_if(contested.owners.begin(), contested.owners.end(),
                                    [&](const std::string& one) { return package_of(one) == rule.package; });
    if (owner == contested.owners.end())
      complain(rule,
               fmt::format("it does not have {}, which {} do", contested.path, fmt::join(contested.owners, " and ")));
    else if (!winners_.emplace(contested.path, *owner).second)
      complain(rule, "another rule has decided " + contested.path + " already");
  }

  void complain(const OwnerRule& rule, const std::string& why) { faults_ += complaint(rule, why); }

  PathOwners& owners_;
  std::string site_;
  std::map<std::string, std::string> winners_;  // path -> wheel
  std::string faults_;
};

}  // namespace

std::vector<OwnerRule> read_owner_rules(TomlTable& document) {
  std::vector<OwnerRule> rules;
  std::set<std::string> paths;
  for (TomlTable& table : document.tables("owner")) {
    if (rules.size() == kMaxRules) table.refuse("path", "there are too many rules", std::to_string(kMaxRules));
    rules.push_back(read_rule(table));
    if (!paths.insert(rules.back().path).second)
      table.refuse("path", "a path has two rules", "one owner", rules.back().path);
  }
  return rules;
}

std::string write_owner_rules(const std::vector<OwnerRule>& rules) {
  std::string out;
  for (const OwnerRule& rule : rules)
    out += fmt::format("\n[[owner]]\npath = {}\npackage = {}\n", toml_quoted(rule.path), toml_quoted(rule.package));
  return out;
}

void require_packages(const std::vector<OwnerRule>& rules, const std::set<std::string>& packages) {
  std::string faults;
  for (const OwnerRule& rule : rules)
    if (!packages.contains(rule.package)) faults += complaint(rule, "no such package is locked");
  if (!faults.empty()) refuse(faults);
}

LeftOut settle(PathOwners& owners, const std::vector<OwnerRule>& rules, const std::string& site_packages) {
  Settlement settlement(owners, site_packages);
  for (const OwnerRule& rule : rules) settlement.apply(rule);
  return settlement.take();
}

}  // namespace sealift::packager
