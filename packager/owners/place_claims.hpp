// SPDX-License-Identifier: Apache-2.0
// Whose each place of the environment is: what all contents install must fit together, each path and package with one
// owner, and nothing where it must not lie.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "packager/owners/installed_content.hpp"
#include "packager/owners/settle_owners.hpp"
#include "packager/owners/shared_packages.hpp"

namespace sealift::packager {

class PlaceClaims {
 public:
  // `lock` must outlive this.
  explicit PlaceClaims(const Lock& lock);

  // Throws what fault_of_entry_place says where only a wheel, the interpreter or the runtime may lie.
  void claim(const Content& content, const Installed& installed);
  struct Settled {
    LeftOut left_out;
    Shares shares;
    std::vector<std::string> unused;  // "PATH is that of WHEEL": files that differ, which nobody uses
  };
  // Of all that was claimed. Throws Conflict when a path or package has two owners, Missing when nothing brings a
  // library, Usage for an allowed start-up file that is nowhere and for rules that decide nothing.
  Settled settle_owners();
  std::size_t left_out_bytecode() const { return left_out_bytecode_; }
  // Wheels whose RECORD is wrong about files, each with how many.
  const std::vector<std::string>& misdescribed() const { return misdescribed_; }

 private:
  void require_place(const Content& content, const std::string& place) const;
  LeftOut undecided() const;
  Shares settle_packages(const LeftOut& left_out) const;
  void require_startup_files() const;
  void require_libraries() const;

  const Lock& lock_;
  std::string site_packages_;
  PathOwners owners_;
  std::vector<std::pair<Installed::File, std::string>> packaged_;  // files of site-packages, and their wheels
  std::vector<std::pair<bundle::StartupEffects, std::string>> startup_;
  std::vector<std::pair<std::string, std::set<std::string>>> needs_;  // of wheels
  std::size_t used_startup_files_ = 0, left_out_bytecode_ = 0;
  std::vector<std::string> misdescribed_;
  std::set<std::string> libraries_;  // names of the wheels' files
};

}  // namespace sealift::packager
