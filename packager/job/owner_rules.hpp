// SPDX-License-Identifier: Apache-2.0
// [[owner]]: which of two wheels owns a path that both bring, such as the libnccl.so.2 of nvidia-nccl-cu12 and -cu13.
// Written in the job file, kept in the lock, applied by `create`; the file of the other wheel is left out.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "packager/job/path_owners.hpp"
#include "packager/job/toml_file.hpp"

namespace sealift::packager {

struct OwnerRule {
  std::string path;     // a file, or a folder for all that lies below; relative to site-packages or to the root
  std::string package;  // that owns it, as a normalized name

  bool operator==(const OwnerRule&) const = default;
};

// Of a job file or a lock. Throws the document's fault with line and key; also when a path has two rules.
std::vector<OwnerRule> read_owner_rules(TomlTable& document);
std::string write_owner_rules(const std::vector<OwnerRule>& rules);

// What `lock` can say before any wheel is there: throws Usage, with all of them, for rules that name a package which is
// not among these normalized names.
void require_packages(const std::vector<OwnerRule>& rules, const std::set<std::string>& packages);

// Wheel -> its files, by their place below the root, that another wheel owns.
using LeftOut = std::map<std::string, std::set<std::string>>;

// Takes from every wheel what a rule gives to another one. Throws Usage, with all of them, for rules that decide
// nothing, that name a package which does not bring a path, or that decide one path twice.
LeftOut settle(PathOwners& owners, const std::vector<OwnerRule>& rules, const std::string& site_packages);

}  // namespace sealift::packager
