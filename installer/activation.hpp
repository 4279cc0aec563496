// SPDX-License-Identifier: Apache-2.0
// PREFIX/activate, activate.fish, activate.csh and modulefiles/NAME.lua: how a shell comes to use PREFIX/current. They
// find the prefix by where they lie, as far as their shell can tell, so it may be moved or mounted elsewhere.
#pragma once

#include "installer/disk.hpp"
#include "installer/prefix.hpp"

namespace sealift::installer {

// Writes those that are not there or say something else. `name` is the bundle's, `staging` a folder of this run.
void write_activation(const Prefix& prefix, const std::string& name, const std::filesystem::path& staging, Disk& disk);

}  // namespace sealift::installer
