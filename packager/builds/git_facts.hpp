// SPDX-License-Identifier: Apache-2.0
// What a build may ask git about its source: the version that tags tell, and which files are tracked. Many backends do,
// and without an answer some build another version or leave files out in silence.
#pragma once

#include <filesystem>

#include "packager/files/tree.hpp"

namespace sealift::packager {

// Adds a `.git` to the tree of a checkout: HEAD, its commits, its own files, the tags below it and which files are
// tracked; no configuration, log, branch or remote, so that it names no address, and the same bytes for the same commit
// by the same git. Does nothing where `checkout` is no top folder of a repository with a commit. The new files are in
// `scratch`, which is made anew.
void add_git_facts(const std::filesystem::path& checkout, const std::filesystem::path& scratch, Tree& tree);

// What is in a checkout as a pointer of Git LFS, relative to it. Where `bring`, git-lfs is asked for what they stand
// for first, if there is one, and a repository of this machine for its own store.
std::vector<std::string> lfs_pointers(const std::filesystem::path& checkout, const std::filesystem::path& repository,
                                      const std::map<std::string, std::string>& variables, bool bring);

}  // namespace sealift::packager
