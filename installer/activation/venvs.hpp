// SPDX-License-Identifier: Apache-2.0
// PREFIX/venvs: the virtual environments that the prefix's owner made on its generations, one small file each, named
// NNNN- and a digest of its place, which it holds. gc keeps what they use. Ordinary users cannot write here.
#pragma once

#include <map>

#include "installer/disk/disk.hpp"
#include "installer/prefix/prefix.hpp"

namespace sealift::installer {

using KnownVenvs = std::multimap<unsigned, std::filesystem::path>;  // generation -> folder

// The ones that still count: a folder that is gone while the one above it is there was removed; where that one is not
// there either, its disk may only not be mounted here.
KnownVenvs known_venvs(const Prefix& prefix);

// The caller holds the prefix lock. A folder counts for one generation, the last one that was written.
void remember_venv(const Prefix& prefix, unsigned number, const std::filesystem::path& folder, Disk& disk);

}  // namespace sealift::installer
