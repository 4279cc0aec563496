// SPDX-License-Identifier: Apache-2.0
// PREFIX/pins: the generations that gc must leave alone, one empty file each, named like the generation. So pinning
// adds one name and unpinning removes one: there is no state in between.
#pragma once

#include <set>

#include "installer/disk/disk.hpp"
#include "installer/prefix/prefix.hpp"

namespace sealift::installer {

// The numbers that are pinned, with or without such a generation.
std::set<unsigned> pinned_generations(const Prefix& prefix);

// False when nothing changes. Throws Missing, listing the existing ones, when there is no such generation.
bool pin_generation(const Prefix& prefix, unsigned number, Disk& disk);
bool unpin_generation(const Prefix& prefix, unsigned number, Disk& disk);

}  // namespace sealift::installer
