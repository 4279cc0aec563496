// SPDX-License-Identifier: Apache-2.0
// PREFIX/activate, activate.fish, activate.csh and modulefiles/NAME.lua: with them a shell uses PREFIX/current. They
// find the prefix by their own location where their shell can tell it, so that it may be moved or mounted elsewhere.
#pragma once

#include "installer/prefix/small_files.hpp"
#include "sealift/bundle/manifest/variables.hpp"

namespace sealift::installer {

// The files and their texts; `name` is the bundle's.
SmallFiles activation_files(const Prefix& prefix, const std::string& name, const bundle::Variables& variables);

}  // namespace sealift::installer
