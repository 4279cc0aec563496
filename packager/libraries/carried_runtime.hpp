// SPDX-License-Identifier: Apache-2.0
// `[target] runtime = "carried"`: this machine's glibc, loader and libraries, travels with the environment, for targets
// whose own glibc is too old. sealift-start runs the interpreter and the programs with it, so the target only has to
// offer a new enough kernel; its own programs keep its own glibc. Third-party libraries stay in lib/.
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

// The first of `folders` that holds a complete glibc for `arch`. Throws Missing, or Platform when it is older
// than 2.33, whose loader has no --argv0.
RuntimeFiles find_runtime(const std::string& arch, const std::vector<std::filesystem::path>& folders);

// Adds it to lib/runtime, where sealift-start expects it.
void carry_runtime(Tree& tree, const RuntimeFiles& runtime);

// Whether `path`, below a generation's root, belongs to a carried glibc.
bool is_runtime_file(const std::string& path);

// The target with the glibc that programs are loaded with: its own, or the carried one.
inline bundle::Target loaded_with(bundle::Target target, const std::optional<bundle::CarriedRuntime>& runtime) {
  if (runtime) target.glibc = runtime->glibc;
  return target;
}

}  // namespace sealift::packager
