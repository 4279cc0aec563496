// SPDX-License-Identifier: Apache-2.0
// [toolchain]: a compiler that travels, as a wheel of the index, launchers that are written here, and variables that
// name it. Read with the job, pinned as one table of the lock; `contents_of` makes the files of it.
// Sources: ziglang 0.15.2 to 0.17.1 (zig cc: clang, and glibc's headers and start files for any version); triton 3.6.0,
// runtime/build.py (CC is the path of one program, without arguments); torch 2.11, _inductor/cpp_builder.py (CXX,
// -fopenmp, -lgomp) and codecache.py (`openssl sha512 FILE`, by PATH, whatever compiles).
#pragma once

#include <string>
#include <vector>

#include "packager/tables/toml_file.hpp"
#include "sealift/bundle/manifest/target.hpp"
#include "sealift/bundle/manifest/variables.hpp"

namespace sealift::packager {

struct Toolchain {
  bool c = false;
  bool cxx = false;  // for Inductor on CPUs; never without c

  bool operator==(const Toolchain&) const = default;
};

Toolchain read_toolchain(TomlTable& document);            // of a job or a lock; all false where it has no [toolchain]
std::string write_toolchain(const Toolchain& toolchain);  // empty for all false

// What is to be required for it, unless `requirements` name that already.
std::vector<std::string> toolchain_requirements(const Toolchain& toolchain,
                                                const std::vector<std::string>& requirements);

// CC, CXX, and where the compiler keeps what it made: the user's own folder.
bundle::Variables toolchain_variables(const Toolchain& toolchain);

struct ToolchainFile {
  std::string place;  // below the generation's root
  std::string text;
  bool executable = true;
};

// Launchers as scripts for /bin/sh, which compile for the target's glibc or for an older one that the compiler knows;
// and with cxx what OpenMP needs, and an `openssl` for hosts without one.
std::vector<ToolchainFile> toolchain_files(const Toolchain& toolchain, const bundle::Target& target,
                                           const std::string& python);

}  // namespace sealift::packager
