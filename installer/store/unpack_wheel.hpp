// SPDX-License-Identifier: Apache-2.0
// One wheel entry into one store item: its files by scheme, its programs made relocatable, INSTALLER.
// RECORD is not written here but with the generation, since its rows depend on where site-packages is.
#pragma once

#include "installer/store/item_writer.hpp"
#include "sealift/bundle/verified_bundle.hpp"
#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::installer {

// Throws Format or Digest when the wheel is not what its own RECORD says.
void unpack_wheel(const bundle::VerifiedBundle& bundle, const bundle::Entry& entry, ItemWriter& writer);

// The program of an entry point: runs the python3 that lies beside it, wherever that is.
std::string script_of(const bundle::EntryPoint& point);
// A script that starts with "#!python", with that line replaced by one that finds the python3 beside it.
std::string relocatable_script(std::string_view text);

}  // namespace sealift::installer
