// SPDX-License-Identifier: Apache-2.0
// PREFIX/activate, activate.fish, activate.csh and modulefiles/NAME.lua: how a shell comes to use PREFIX/current. They
// find the prefix by where they lie, as far as their shell can tell, so it may be moved or mounted elsewhere.
#pragma once

#include "installer/prefix/small_files.hpp"

namespace sealift::installer {

// What they say; `name` is the bundle's.
SmallFiles activation_files(const Prefix& prefix, const std::string& name);

}  // namespace sealift::installer
