// SPDX-License-Identifier: Apache-2.0
// Who owns which path; see path_owners.hpp. Two wheels of one library share dozens of paths, and a reader wants to know
// which two wheels they are, so conflicts are reported by pair of owners.
#include "packager/owners/path_owners.hpp"

#include <algorithm>
#include <set>

#include "packager/tables/toml_file.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr std::size_t kMostRules = 10;

// The first name below site-packages, with what leads there; or the first name of another path.
std::string top_of(const std::string& path) {
  static constexpr std::string_view kPackages = "/site-packages/";
  const std::size_t packages = path.find(kPackages);
  return path.substr(0, path.find('/', packages == path.npos ? 0 : packages + kPackages.size()));
}

// What can be pasted, for two wheels; empty for others, which no rule is for.
std::string rule_for(const std::string& first, const std::string& second, const std::string& path) {
  const auto one = bundle::parse_wheel_name(first), other = bundle::parse_wheel_name(second);
  const std::size_t packages = path.find("/site-packages/");
  if (!one || !other || path.empty() || path.ends_with("/site-packages")) return {};
  const std::string below =
      packages == path.npos ? path : path.substr(packages + std::string_view("/site-packages/").size());
  return "\n            [[owner]]\n            path = " + toml_quoted(below) +
         "\n            package = " + toml_quoted(bundle::normalized_project_name(one->name)) + "   # or " +
         toml_quoted(bundle::normalized_project_name(other->name));
}

}  // namespace

void PathOwners::claim(const std::string& path, const std::string& owner, const std::optional<bundle::Digest>& sha256,
                       bool yields) {
  const auto [found, fresh] = owners_.emplace(path, Owner{.name = owner, .sha256 = sha256, .yields = yields});
  if (fresh) return;
  const Owner& one = found->second;
  const auto [place, first] = index_.emplace(path, contested_.size());
  if (first)
    contested_.push_back({.path = path,
                          .owners = {one.name},
                          .equal = one.sha256.has_value(),
                          .natural = one.name,
                          .sha256 = one.sha256,
                          .yields = one.yields});
  Contested& contested = contested_[place->second];
  contested.owners.push_back(owner);
  if (yields) return;
  contested.equal = contested.equal && sha256 && (contested.yields || sha256 == contested.sha256);
  if (!contested.yields) return;
  contested.natural = owner;
  contested.sha256 = sha256;
  contested.yields = false;
}

std::vector<std::string> PathOwners::give(const std::string& path, const std::string& winner) {
  std::vector<std::string> losers, left;
  std::vector<std::string>& owners = contested_.at(index_.at(path)).owners;
  for (const std::string& owner : owners) (owner != winner && owner.ends_with(".whl") ? losers : left).push_back(owner);
  owners = std::move(left);
  owners_[path].name = winner;
  return losers;
}

void PathOwners::add(Conflicts& conflicts, const std::string& path, const std::string& first, const std::string& second,
                     const std::string& note) {
  Conflict& conflict = conflicts[{first, second}];
  if (conflict.paths++ == 0) {
    conflict.text = path + ": " + first + " and " + second + note;
    conflict.common = path;
  }
  conflict.tops.insert(top_of(path));
  std::string& common = conflict.common;  // the folder that holds all of them; empty where that is the root
  while (!common.empty() && path != common && !path.starts_with(common + "/")) {
    const std::size_t slash = common.rfind('/');
    common.erase(slash == common.npos ? 0 : slash);
  }
}

void PathOwners::check() const {
  Conflicts conflicts;
  for (const Contested& contested : contested_)
    for (std::size_t i = 1; i < contested.owners.size(); ++i)
      add(conflicts, contested.path, contested.owners[0], contested.owners[i], "");
  for (const auto& [path, owner] : owners_)
    for (std::size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1))
      if (const auto file = owners_.find(path.substr(0, slash)); file != owners_.end())
        add(conflicts, file->first, file->second.name, owner.name, ", a file of the first and a folder of the second");
  if (conflicts.empty()) return;
  std::string got, rules;
  std::size_t told = 0;
  for (const auto& [owners, conflict] : conflicts) {
    const bool is_one = !rule_for(owners.first, owners.second, conflict.common).empty();
    for (const std::string& path : is_one ? std::set<std::string>{conflict.common} : conflict.tops)
      if (const std::string rule = rule_for(owners.first, owners.second, path); told < kMostRules && !rule.empty()) {
        rules += rule;
        ++told;
      }
    got += "\n    " + conflict.text;
    if (conflict.paths > 1) got += ", and " + std::to_string(conflict.paths - 1) + " more path(s) of the same two";
  }
  throw Error(ErrorCode::Conflict,
              {.what = "two packages would install the same path",
               .expected = "one owner for every path, or the same bytes in each wheel",
               .got = got,
               .next = "require only one of each two; if another package asks for it, choose a version of that "
                       "package that asks for the same one, leave one out ([python] excludes = [\"NAME\"]), or say in "
                       "the job file which one owns the path:" +
                       (rules.empty() ? " [[owner]] path = \"...\", package = \"...\"" : rules)});
}

}  // namespace sealift::packager
