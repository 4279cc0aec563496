// SPDX-License-Identifier: Apache-2.0
// In which folders the dynamic linker looks for a library, as pure functions of what ELF files say: ld.so(8) and
// glibc's elf/dl-load.c, _dl_map_new_object. Whoever follows NEEDED, on this machine or inside a bundle, asks here.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/native/elf.hpp"

namespace sealift::packager {

// The folders of a DT_RPATH or DT_RUNPATH, in order, normalised. `origin` is the folder of the object that says it.
// $LIB stands for each of the folders that distributions use for it, $PLATFORM for `arch`. Empty parts mean the current
// folder, which nobody can know, and are left out.
std::vector<std::string> expand_search_path(std::string_view text, const std::string& origin, const std::string& arch);

// A loaded object, as far as the search asks.
struct LoadedObject {
  const bundle::ElfFile* elf;
  std::string origin;  // its folder
};

// Where the first object of `chain` has its NEEDED looked for, before the linker's own folders. Behind it stands who
// loaded it, and so on up to the program: DT_RUNPATH counts for its own object only and switches off every DT_RPATH;
// DT_RPATH counts for everything that its object loads, unless that object also has a DT_RUNPATH. `library_path` is
// what the linker was told when it was started (`--library-path`): behind DT_RPATH, before DT_RUNPATH.
std::vector<std::string> search_folders(std::span<const LoadedObject> chain, const std::string& arch,
                                        std::span<const std::string> library_path = {});

}  // namespace sealift::packager
