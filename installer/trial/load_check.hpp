// SPDX-License-Identifier: Apache-2.0
// The load check: does every native file of a generation load? One interpreter opens them one after the other, as
// `import` and ctypes would; a file that crashes it is tried alone. A file that needs the GPU's driver is reported as
// such, never as loaded.
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
  std::vector<Unloaded> driver;  // need a library of the GPU's driver, which this machine lacks
  // Need something that no file of the bundle brings; and no file needs them, or they are known as optional.
  std::vector<Unloaded> plugins;
  std::vector<Unloaded> host;    // need a library that the bundle says is the machine's own, which it lacks
  std::vector<Unloaded> broken;  // all others that do not load
};

// `of_host` are patterns of libraries that the machine has itself (host_libraries.hpp). `scratch` holds the list and
// the answers. Throws SelfTest when the interpreter itself fails.
LoadReport load_check(const std::vector<ElfPlace>& files, const std::filesystem::path& generation,
                      const std::filesystem::path& interpreter, const std::filesystem::path& scratch,
                      std::chrono::seconds patience, const std::vector<std::string>& of_host = {});

}  // namespace sealift::installer
