// SPDX-License-Identifier: Apache-2.0
// Source that is not published as one file, a git commit or a folder, made into one: a tar in the cache, so that every
// build starts from bytes with a digest, and can start from them again with the network gone.
#pragma once

#include <filesystem>

#include "packager/files/cache.hpp"
#include "packager/python/pylock.hpp"

namespace sealift::packager {

// The tar's digest; the cache has it afterwards. `scratch` is on the cache's file system. Git's own files, byte code
// and virtual environments are left out. Throws Network when a repository cannot be fetched, Format for a link that
// leaves the folder.
bundle::Digest store_source(const SourcePackage& source, const Cache& cache, const std::filesystem::path& scratch);

}  // namespace sealift::packager
