// SPDX-License-Identifier: Apache-2.0
// [[shared]]: a package may put files below a folder of another one's package, such as an engine's libraries. Written
// in the job file, kept in the lock, applied by `create` (owners/shared_packages.hpp), which says it in the manifest.
// Files of one path are no matter of it: those need an [[owner]].
#pragma once

#include <set>
#include <string>
#include <vector>

#include "packager/tables/toml_file.hpp"

namespace sealift::packager {

struct SharedRule {
  std::string package;  // the normalized name of the package whose files these are
  std::string into;     // a folder of another one's package, relative to site-packages

  bool operator==(const SharedRule&) const = default;
};

// For a job file or a lock. Throws the document's fault with line and key, also for a rule that stands twice.
std::vector<SharedRule> read_shared_rules(TomlTable& document);
std::string write_shared_rules(const std::vector<SharedRule>& rules);

// What `lock` can check before it has any wheel: throws Usage, listing all rules whose package is not among these
// normalized names.
void require_packages(const std::vector<SharedRule>& rules, const std::set<std::string>& packages);

// Of rules that do not fit the packages: one line of the refusal, and the refusal of all of them, a Usage.
std::string fault_line(const SharedRule& rule, const std::string& why);
[[noreturn]] void refuse_shared_rules(const std::string& fault_lines);

}  // namespace sealift::packager
