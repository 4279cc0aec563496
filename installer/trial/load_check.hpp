// SPDX-License-Identifier: Apache-2.0
// Does every native file of a generation load? One started interpreter opens them one after the other, as `import` and
// ctypes would; what crashes it is tried alone. A file that waits for the GPU's driver is said to, never called good.
#pragma once

#include <chrono>

#include "installer/trial/elf_files.hpp"

namespace sealift::installer {

struct LoadReport {
  struct Unloaded {
    std::string path;
    std::string reason;
  };

  std::uint64_t files = 0;
  std::uint64_t loaded = 0;
  std::vector<Unloaded> driver;   // need a library of the driver, which is not on this machine
  std::vector<Unloaded> plugins;  // needed by no file, and miss something that no file of the bundle brings
  std::vector<Unloaded> broken;   // all else that does not load
};

// `scratch` takes the list and the answers. Throws SelfTest when the interpreter itself fails.
LoadReport load_check(const std::vector<ElfPlace>& files, const std::filesystem::path& root,
                      const std::filesystem::path& interpreter, const std::filesystem::path& scratch,
                      std::chrono::seconds patience);

}  // namespace sealift::installer
