// SPDX-License-Identifier: Apache-2.0
// The folders in which the dynamic linker searches for a library, as pure functions of what ELF files say. Used
// wherever NEEDED is followed, on this machine or inside a bundle. Source: ld.so(8); glibc's elf/dl-load.c,
// _dl_map_new_object.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/native/elf.hpp"

namespace sealift::packager {

// The folders of a DT_RPATH or DT_RUNPATH, in order, normalised. `origin` is the folder of the object that says it.
// $LIB becomes each of the folders that distributions use for it, $PLATFORM becomes `arch`. Empty parts mean the
// current folder, which is unknown here, and are left out.
std::vector<std::string> expand_search_path(std::string_view text, const std::string& origin, const std::string& arch);

// What the search needs to know of a loaded object.
struct LoadedObject {
  const bundle::ElfFile* elf;
  std::string origin;  // its folder
};

// The folders searched for what the first object of `chain` needs, before the linker's own. Each object of the chain
// was loaded by the next one; the last is the program. DT_RUNPATH applies to its own object only and disables every
// DT_RPATH; DT_RPATH applies to everything that its object loads, unless that object also has a DT_RUNPATH.
// `library_path`, the linker's `--library-path`, comes after DT_RPATH and before DT_RUNPATH.
std::vector<std::string> search_folders(std::span<const LoadedObject> chain, const std::string& arch,
                                        std::span<const std::string> library_path = {});

}  // namespace sealift::packager
