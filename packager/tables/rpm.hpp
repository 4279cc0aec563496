// SPDX-License-Identifier: Apache-2.0
// Packages of rpm systems in a job and in its lock, as plain values. `lock_rpm` turns the first into the second.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sealift/bundle/core/digest.hpp"

namespace sealift::packager {

// Which signatures of a repository are checked, all by its own keys.
enum class RpmSigned {
  Packages,  // each package's
  Index,     // that of repomd.xml, whose digests reach every package
  Both,
  Nothing,  // the job says so
};

struct RpmRepository {
  std::string name;                         // "baseos"
  std::string url;                          // may hold $releasever and $basearch
  std::vector<std::filesystem::path> keys;  // absolute; armored OpenPGP keys
  RpmSigned checked = RpmSigned::Packages;
};

struct JobRpm {
  std::vector<std::string> packages;  // "gcc-c++" or "gcc-c++-11.5.0-5.el9"; empty: no packages
  std::string release;                // of the target: "9"
  std::vector<RpmRepository> repositories;
};

// A file that `lock` made or copied, which is in the cache: of the repodata, or the keys.
struct LockedRpmIndex {
  std::string file;  // "repodata/repomd.xml"
  std::uint64_t size = 0;
  bundle::Digest sha256;

  bool operator==(const LockedRpmIndex&) const = default;
};

struct LockedRpmPackage {
  std::string file;  // "gcc-c++-11.5.0-5.el9.x86_64.rpm"
  std::string url;
  std::uint64_t size = 0;
  bundle::Digest sha256;

  bool operator==(const LockedRpmPackage&) const = default;
};

struct LockedRpm {
  std::string release;
  std::vector<std::string> packages;
  std::vector<std::string> unsigned_repositories;  // by name; sorted
  std::vector<LockedRpmIndex> index;               // sorted by file
  std::vector<LockedRpmPackage> rpms;              // sorted by file; empty: no packages

  bool operator==(const LockedRpm&) const = default;
};

}  // namespace sealift::packager
