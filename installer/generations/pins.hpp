// SPDX-License-Identifier: Apache-2.0
// PREFIX/pins: the generations that gc must leave alone, one empty file each, named like the generation.
// A file each, so that pinning is one new name and unpinning one name less: no state in between, nothing to rewrite.
#pragma once

#include <set>

#include "installer/disk/disk.hpp"
#include "installer/prefix/prefix.hpp"

namespace sealift::installer {

// The generations that are pinned, whether they are there or not.
std::set<unsigned> pinned_generations(const Prefix& prefix);

// False when it was so already. Throws Missing, naming what is there, when there is no such generation.
bool pin_generation(const Prefix& prefix, unsigned number, Disk& disk);
bool unpin_generation(const Prefix& prefix, unsigned number, Disk& disk);

}  // namespace sealift::installer
