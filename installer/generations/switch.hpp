// SPDX-License-Identifier: Apache-2.0
// The story of `sealift-install switch`: makes an existing generation the current one. Needs no medium and replaces one
// link; the activation files are renewed, everything else in the prefix stays as it is.
#pragma once

#include "installer/generations/generation.hpp"

namespace sealift::installer {

// Throws Missing, listing the existing ones, when there is no such generation.
void require_generation(const Prefix& prefix, unsigned number);

// Throws what require_generation throws.
GenerationRecord switch_to(const Prefix& prefix, unsigned number, Disk& disk);

}  // namespace sealift::installer
