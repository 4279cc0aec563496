// SPDX-License-Identifier: Apache-2.0
// Files of generations that have become copies of the store's, since a prefix was copied without its hard links (`cp
// -r`, `rsync -a` without -H), become one file with them again.
#pragma once

#include <filesystem>
#include <vector>

#include "installer/disk/disk.hpp"
#include "installer/doctor/expected_tree.hpp"

namespace sealift::installer {

// A file of a generation that is another file than the one of the store that it was a name of.
struct CopiedFile {
  std::filesystem::path path, source;
  std::uint64_t size = 0;  // bytes
};

// Those of this tree. What is missing or no plain file is left to the comparison.
std::vector<CopiedFile> copied_files(const ExpectedTree& tree);

struct Relinked {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;     // that the copies took
  bool without_links = false;  // this file system, or a file of it, cannot have hard links
};

// Each by one rename, so that a running program sees the same bytes all the while. The caller holds the prefix lock and
// has found all of these files right. Stopped at any moment, it leaves less to do.
Relinked relink(const std::vector<CopiedFile>& copies, const Prefix& prefix, Disk& disk);

}  // namespace sealift::installer
