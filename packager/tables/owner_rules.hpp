// SPDX-License-Identifier: Apache-2.0
// [[owner]]: which of two wheels owns a path that both have, such as libnccl.so.2 of nvidia-nccl-cu12 and -cu13.
// Written in the job file, kept in the lock, applied by `create` (owners/settle_owners.hpp), which leaves out the other
// wheel's file.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "packager/tables/toml_file.hpp"

namespace sealift::packager {

struct OwnerRule {
  std::string path;     // a file, or a folder with everything below it; relative to site-packages or to the root
  std::string package;  // the owner's normalized name

  bool operator==(const OwnerRule&) const = default;
};

// For a job file or a lock. Throws the document's fault with line and key, also for a path with two rules.
std::vector<OwnerRule> read_owner_rules(TomlTable& document);
std::string write_owner_rules(const std::vector<OwnerRule>& rules);

// What `lock` can check before it has any wheel: throws Usage, listing all rules whose package is not among these
// normalized names.
void require_packages(const std::vector<OwnerRule>& rules, const std::set<std::string>& packages);

// Of rules that do not fit the packages: one line of the refusal, and the refusal of all of them, a Usage.
std::string fault_line(const OwnerRule& rule, const std::string& why);
[[noreturn]] void refuse_owner_rules(const std::string& fault_lines);

}  // namespace sealift::packager
