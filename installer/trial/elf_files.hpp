// SPDX-License-Identifier: Apache-2.0
// The native files of a generation that a dynamic linker would load, in the order in which the load check loads them.
// Found by their ELF headers, not by their names.
#pragma once

#include <string>
#include <vector>

#include "installer/layout/layout.hpp"

namespace sealift::installer {

struct ElfPlace {
  std::string path;      // below the generation
  bool program = false;  // has an interpreter, so it is started and not loaded
  bool needed = false;   // another one names it in NEEDED
  std::string soname;    // or its file name, where it has none
};

// Those for this architecture: each library after its dependencies among them, then the programs. Object files, static
// programs and data that only looks like ELF are left out.
std::vector<ElfPlace> elf_files(const Layout& layout, const std::filesystem::path& generation, const std::string& arch);

}  // namespace sealift::installer
