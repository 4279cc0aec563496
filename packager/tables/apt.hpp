// SPDX-License-Identifier: Apache-2.0
// Debian packages in a job and in its lock, as plain values. `lock_apt` turns the first into the second.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sealift/bundle/core/digest.hpp"

namespace sealift::packager {

struct JobApt {
  std::vector<std::string> packages;  // "g++" or "g++=4:12.2.0-3"; empty: no packages
  std::string suite;                  // of the target: "bookworm"
  std::vector<std::string> sources;   // lines of a sources.list; empty: this machine's own for the suite
};

struct LockedDeb {
  std::string file;  // "g++_12.2.0-3_amd64.deb"
  std::string url;
  std::uint64_t size = 0;
  bundle::Digest sha256;

  bool operator==(const LockedDeb&) const = default;
};

struct LockedApt {
  std::string suite;
  std::vector<std::string> packages;
  std::uint64_t index_size = 0;
  bundle::Digest index_sha256;  // of the file Packages, which is in the cache
  std::vector<LockedDeb> debs;  // sorted by file; empty: no packages

  bool operator==(const LockedApt&) const = default;
};

}  // namespace sealift::packager
