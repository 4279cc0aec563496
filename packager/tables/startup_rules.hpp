// SPDX-License-Identifier: Apache-2.0
// [[startup]]: a .pth file that may run code whenever Python starts, allowed by a person who has read it, for one
// package and by its digest. Written in the job file, kept in the lock; the manifest names the digests, and so signs
// them. Every other such file is refused (bundle/wheel/wheel_startup.hpp).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "packager/tables/toml_file.hpp"
#include "sealift/bundle/core/digest.hpp"

namespace sealift::packager {

struct StartupRule {
  std::string package;  // normalized name
  bundle::Digest sha256;

  bool operator==(const StartupRule&) const = default;
};

// For a job file or a lock. Throws the document's fault with line and key, also for a digest that stands twice.
std::vector<StartupRule> read_startup_rules(TomlTable& document);
std::string write_startup_rules(const std::vector<StartupRule>& rules);

// The digests that are allowed for `package`, in whatever spelling.
std::set<bundle::Digest> allowed_files(const std::vector<StartupRule>& rules, const std::string& package);

}  // namespace sealift::packager
