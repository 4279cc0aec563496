// SPDX-License-Identifier: Apache-2.0
// The story of `sealift-install switch`: makes an existing generation the current one. Needs no medium and replaces one
// link; the activation files are renewed, everything else in the prefix stays as it is.
#pragma once

#include "installer/disk/disk.hpp"
#include "installer/generations/generation_record.hpp"
#include "installer/prefix/prefix.hpp"

namespace sealift::installer {

// Throws what require_generation throws.
GenerationRecord switch_to(const Prefix& prefix, unsigned number, Disk& disk);

}  // namespace sealift::installer
