// SPDX-License-Identifier: Apache-2.0
// See settle_owners.hpp. Rules choose only between wheels: files of the interpreter or of a program belong to no
// package that a rule could name.
#include "packager/owners/settle_owners.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "packager/owners/shared_packages.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

namespace {

bool covers(std::string_view rule, std::string_view path) {
  return path.starts_with(rule) && (path.size() == rule.size() || path[rule.size()] == '/');
}

// The package of a wheel; empty for the interpreter, programs and models.
std::string package_of(const std::string& owner) {
  const auto wheel = owner.ends_with(".whl") ? bundle::parse_wheel_name(owner) : std::nullopt;
  return wheel ? bundle::normalized_project_name(wheel->name) : "";
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

  LeftOut take(std::vector<std::string>& unused) {
    LeftOut left_out;
    for (const PathOwners::Contested& contested : owners_.contested())
      if (contested.equal || is_unused(contested)) {
        const bool decided = winners_.contains(contested.path);
        winners_.emplace(contested.path, contested.natural);
        if (!contested.equal && !decided) unused.push_back(contested.path + " is that of " + contested.natural);
      }
    for (const auto& [path, winner] : winners_) {
      for (const std::string& loser : owners_.give(path, winner)) left_out[loser].insert(path);
    }
    if (faults_.empty()) return left_out;
    try {
      owners_.check();
    } catch (const bundle::Error& collisions) {
      faults_ += "\n  and no valid rule decides" + collisions.facts().got;
    }
    refuse_owner_rules(faults_);
  }

 private:
  bool decides(const OwnerRule& rule, std::string_view path) const {
    return covers(rule.path, path) || (path.starts_with(site_) && covers(rule.path, path.substr(site_.size())));
  }

  // Files that many projects put into site-packages or the root by mistake, of wheels alone: pip keeps the last.
  bool is_unused(const PathOwners::Contested& contested) const {
    const std::string_view path = contested.path;
    return contested.sha256 && is_litter(path.starts_with(site_) ? path.substr(site_.size()) : path);
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

  void complain(const OwnerRule& rule, const std::string& why) { faults_ += fault_line(rule, why); }

  PathOwners& owners_;
  std::string site_;
  std::map<std::string, std::string> winners_;  // path -> wheel
  std::string faults_;
};

}  // namespace

LeftOut settle(PathOwners& owners, const std::vector<OwnerRule>& rules, const std::string& site_packages,
               std::vector<std::string>& unused) {
  Settlement settlement(owners, site_packages);
  for (const OwnerRule& rule : rules) settlement.apply(rule);
  return settlement.take(unused);
}

}  // namespace sealift::packager
