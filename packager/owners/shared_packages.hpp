// SPDX-License-Identifier: Apache-2.0
// One package in several wheels: who may put files into whose package. A namespace belongs to nobody. A package that
// requires another one may put files of new names into it, as airflow's providers do, but no library into a folder that
// ld.so searches for the other's: that, and everything else, needs a [[shared]] rule. What is allowed goes into the
// manifest, so that a reviewer sees it and the installer refuses all else.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "packager/tables/shared_rules.hpp"
#include "sealift/bundle/wheel/package_owners.hpp"

namespace sealift::packager {

// Wheel -> folders below site-packages, in another one's package, that may have files of it.
using Shares = std::map<std::string, std::set<std::string>>;

class SharedPackages {
 public:
  // `rules` must outlive this.
  explicit SharedPackages(const std::vector<SharedRule>& rules) : rules_(rules) {}

  // Notes the normalized names of what a wheel requires, whatever extra asks for it.
  void note_needs(const std::string& wheel, const std::set<std::string>& needs);
  // Notes a top-level package whose __init__.py, as it will be installed, only extends its path.
  void note_namespace(const std::string& package) { namespaces_.insert(package); }
  // Notes a file below site-packages as it will be installed.
  void note_file(std::string_view path, const std::string& wheel);
  // Notes one that an [[owner]] rule leaves out of this wheel: a rule for its folder was told together with that one,
  // and allows nothing any more.
  void note_left_out(std::string_view path, const std::string& wheel);

  // Shares in `packages` what may be shared, and returns it; what is left, its check() refuses. Throws Usage for rules
  // that allow nothing.
  Shares settle(bundle::PackageOwners& packages) const;

 private:
  bool requires_it(const std::string& guest, const std::string& owner) const;
  bool is_searched(std::string_view path, const std::string& wheel) const;
  bool had_files(const SharedRule& rule) const;

  const std::vector<SharedRule>& rules_;
  std::map<std::string, std::set<std::string>> needs_;  // project -> projects
  std::set<std::string> namespaces_;
  std::map<std::string, std::vector<std::string>> left_out_;             // project -> files
  std::map<std::string, std::set<std::string>, std::less<>> libraries_;  // folder -> wheels with a library there
};

// Top-level folders and files of site-packages, or of the root, that nobody imports by design and that many projects
// ship by mistake: tests/, docs/, LICENSE.
bool is_litter(std::string_view path);

}  // namespace sealift::packager
