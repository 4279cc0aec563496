// SPDX-License-Identifier: Apache-2.0
// This machine's sources of packages, reduced to one suite: what `lock_apt` resolves from when the job names no
// sources.
#pragma once

#include <filesystem>
#include <set>
#include <string>

namespace sealift::packager {

struct AptSources {
  std::string lines;             // for a sources.list
  std::string stanzas;           // for a .sources file
  std::set<std::string> suites;  // every suite that a source names, for messages
};

// Reads sources.list and sources.list.d below `folder` (/etc/apt). SUITE-updates and SUITE-security belong to the
// suite.
AptSources find_apt_sources(const std::filesystem::path& folder, const std::string& suite);

}  // namespace sealift::packager
