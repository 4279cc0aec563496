// SPDX-License-Identifier: Apache-2.0
// Unpacks one wheel entry into one store item: its files by scheme, relocatable programs, INSTALLER. RECORD is written
// with the generation, since its rows depend on where site-packages is.
#pragma once

#include "installer/store/item_writer.hpp"
#include "sealift/bundle/verified_bundle.hpp"
#include "sealift/bundle/wheel/wheel.hpp"

namespace sealift::installer {

// The digests of its files are those of its RECORD, which the packer compared. Throws Format or Digest when chunks,
// archive or RECORD do not hold.
void unpack_wheel(const bundle::VerifiedBundle& bundle, const bundle::Entry& entry, ItemWriter& writer);

// The program of an entry point; it runs the python3 in its own folder.
std::string script_of(const bundle::EntryPoint& point);
// A script whose first line, "#!python", is replaced by lines that run the python3 in its own folder.
std::string relocatable_script(std::string_view text);

}  // namespace sealift::installer
