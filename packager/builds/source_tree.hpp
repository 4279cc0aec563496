// SPDX-License-Identifier: Apache-2.0
// Makes one tar in the cache from a source that is not published as one file, a git commit or a folder, so that every
// build starts from bytes with a digest and can be repeated without the network.
#pragma once

#include <filesystem>

#include "packager/files/cache.hpp"
#include "packager/host/git_login.hpp"
#include "packager/resolve/pylock.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// Puts the tar into the cache and returns its digest. `scratch` is on the cache's file system. Byte code
// and virtual environments are left out; of git there is what git_facts.hpp says. Links of a folder to what lies beside
// it in its repository, or in the folder above it, are followed. A login in the repository's own address counts as one
// of `logins`. Throws Network when a repository cannot be fetched, Format for a link that leaves the folder.
bundle::Digest store_source(const SourcePackage& source, const Cache& cache, const std::filesystem::path& scratch,
                            const GitLogins& logins, bundle::Progress& progress);

}  // namespace sealift::packager
