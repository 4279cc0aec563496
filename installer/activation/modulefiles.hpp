// SPDX-License-Identifier: Apache-2.0
// PREFIX/modulefiles: NAME leads to whatever generation is current, NAME-0003 to that one for good, each in Lua for
// Lmod and in Tcl for Environment Modules (Lmod takes NAME.lua before NAME, and the other passes over NAME.lua).
#pragma once

#include "installer/generations/generation_record.hpp"
#include "installer/prefix/small_files.hpp"
#include "sealift/bundle/manifest/variables.hpp"

namespace sealift::installer {

// The two files of one generation.
SmallFiles modulefiles_of(const Prefix& prefix, const GenerationRecord& record, const bundle::Variables& variables);
// The two files of `current`, when that leads to this generation.
SmallFiles modulefiles_of_current(const Prefix& prefix, const GenerationRecord& record,
                                  const bundle::Variables& variables);

}  // namespace sealift::installer
