// SPDX-License-Identifier: Apache-2.0
// Where this machine gets the packages of a suite: its own sources, and nothing of other suites.
#pragma once

#include <filesystem>
#include <set>
#include <string>

namespace sealift::packager {

struct AptSources {
  std::string lines;             // what becomes a sources.list
  std::string stanzas;           // what becomes a .sources file
  std::set<std::string> suites;  // all that were seen, wanted or not
};

// Reads sources.list and sources.list.d below `folder` (/etc/apt). A suite has its -updates and -security with it.
AptSources find_apt_sources(const std::filesystem::path& folder, const std::string& suite);

}  // namespace sealift::packager
