// SPDX-License-Identifier: Apache-2.0
// `[target] runtime = "carried"`: glibc's loader and libraries of this machine travel with the environment, for targets
// that are older than what is carried. sealift-start starts the interpreter and the programs through them; the target
// then has to offer a kernel, and its own programs go on with its own glibc. Third-party libraries lie in lib/ as ever.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "packager/files/tree.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::packager {

struct RuntimeFiles {
  bundle::CarriedRuntime runtime;
  std::map<std::string, std::filesystem::path> files;  // name -> the file on this machine
};

// The first of `folders` that holds a whole glibc for `arch`. Throws Missing, or Platform when it is older than 2.33,
// whose loader cannot be told a program's name.
RuntimeFiles find_runtime(const std::string& arch, const std::vector<std::filesystem::path>& folders);

// Puts it where sealift-start looks for it: lib/runtime.
void carry_runtime(Tree& tree, const RuntimeFiles& runtime);

// Is `path`, in a generation, a part of it?
bool is_runtime_file(const std::string& path);

// What the dynamic linker of an environment offers: the target's, or the carried one's.
inline bundle::Target loaded_with(bundle::Target target, const std::optional<bundle::CarriedRuntime>& runtime) {
  if (runtime) target.glibc = runtime->glibc;
  return target;
}

}  // namespace sealift::packager
