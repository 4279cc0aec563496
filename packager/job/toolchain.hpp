// SPDX-License-Identifier: Apache-2.0
// [toolchain]: a compiler that travels, as a wheel of the index, a launcher that is written here, and variables that
// name it. Read with the job, pinned as one line of the lock; `contents_of` makes the launcher of it.
// Sources: ziglang 0.15.2 (zig cc: clang, and glibc's headers and start files for any version); triton 3.6.0,
// runtime/build.py (CC is the path of one program, without arguments).
#pragma once

#include <string>
#include <vector>

#include "packager/job/toml_file.hpp"
#include "sealift/bundle/manifest/target.hpp"
#include "sealift/bundle/manifest/variables.hpp"

namespace sealift::packager {

struct Toolchain {
  bool c = false;

  bool operator==(const Toolchain&) const = default;
};

Toolchain read_toolchain(TomlTable& document);            // of a job or a lock; all false where it has no [toolchain]
std::string write_toolchain(const Toolchain& toolchain);  // empty for all false

// What is to be required for it, unless `requirements` name that already.
std::vector<std::string> toolchain_requirements(const Toolchain& toolchain,
                                                const std::vector<std::string>& requirements);

// CC, and where the compiler keeps what it made: the user's own folder.
bundle::Variables toolchain_variables(const Toolchain& toolchain);

// The launcher as a script for /bin/sh. It compiles for the target's glibc, or for an older one that the compiler
// knows.
std::string compiler_launcher(const bundle::Target& target, const std::string& python);

}  // namespace sealift::packager
