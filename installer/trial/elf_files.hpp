// SPDX-License-Identifier: Apache-2.0
// The native files of a generation that a dynamic linker would load, as the self-test goes through them.
// Read from their headers; which of them load is `load_check`'s business.
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

// Those for this architecture, each library after those of its own that it needs, then the programs. Objects, static
// programs and what only looks like ELF (data of somebody's tests) are left out.
std::vector<ElfPlace> elf_files(const Layout& layout, const std::filesystem::path& root, const std::string& arch);

}  // namespace sealift::installer
