// SPDX-License-Identifier: Apache-2.0
// The way back: makes a generation that is there the current one. Needs no medium and writes one link.
// Everything else about the prefix stays as it is.
#pragma once

#include "installer/generations/generation.hpp"

namespace sealift::installer {

// Throws Missing, naming what is there, when there is no such generation.
void require_generation(const Prefix& prefix, unsigned number);

// Throws as that does.
GenerationRecord switch_to(const Prefix& prefix, unsigned number, Disk& disk);

}  // namespace sealift::installer
