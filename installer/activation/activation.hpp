// SPDX-License-Identifier: Apache-2.0
// PREFIX/activate, activate.fish, activate.csh and modulefiles/NAME: with them a shell uses PREFIX/current. They
// find the prefix by their own location where their shell can tell it, so that it may be moved or mounted elsewhere.
#pragma once

#include "installer/generations/generation_record.hpp"
#include "installer/prefix/small_files.hpp"

namespace sealift::installer {

// The files and their texts, for a generation that is current or about to be. Throws what variables_of throws.
SmallFiles activation_files(const Prefix& prefix, const GenerationRecord& record);

}  // namespace sealift::installer
