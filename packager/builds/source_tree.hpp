// SPDX-License-Identifier: Apache-2.0
// Makes one tar in the cache from a source that is not published as one file, a git commit or a folder, so that every
// build starts from bytes with a digest and can be repeated without the network.
#pragma once

#include <filesystem>

#include "packager/files/cache.hpp"
#include "packager/host/git_login.hpp"
#include "packager/resolve/pylock.hpp"

namespace sealift::packager {

// Puts the tar into the cache and returns its digest. `scratch` is on the cache's file system. Git's own files, byte
// code and virtual environments are left out. A login in the repository's own address counts as one of `logins`.
// Throws Network when a repository cannot be fetched, Format for a link that leaves the folder.
bundle::Digest store_source(const SourcePackage& source, const Cache& cache, const std::filesystem::path& scratch,
                            const GitLogins& logins = {});

// Where store_source has cloned a repository.
std::filesystem::path clone_of(const SourcePackage& source, const std::filesystem::path& scratch);

}  // namespace sealift::packager
