// SPDX-License-Identifier: Apache-2.0
// The file system that a prefix lies on: its type, how it is mounted, whether this user may write there. Read without
// writing, since a refusal must leave no trace; preflight judges it.
#pragma once

#include <vector>

#include "installer/disk/disk.hpp"
#include "installer/prefix/prefix.hpp"

namespace sealift::installer {

struct PrefixFilesystem {
  std::filesystem::path path;  // the prefix
  Mount mount;
  bool writable = true;                                    // by this user, in the nearest folder that exists
  bool folds_case = false;                                 // "a" and "A" are one name there
  std::vector<std::filesystem::path> mounted_inside = {};  // folders of the prefix that are mounts of their own
};

PrefixFilesystem probe_prefix_filesystem(const Prefix& prefix, const Disk& disk);

}  // namespace sealift::installer
