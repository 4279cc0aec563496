// SPDX-License-Identifier: Apache-2.0
// NVIDIA's toolkit as wheels (cuda-toolkit[nvcc,…]), where a build gets its compiler from. The wheels hold what
// programs need when they run; what a linker looks for, and whether compiler and assembler are of one release, is seen
// to here. Its names, as wheels of CUDA 13 have them: nvidia/cu13/bin/nvcc, lib/libcudart.so.13, nvvm/bin/cicc.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace sealift::packager {

// The toolkit whose nvcc lies in this environment: nvidia/cu13; empty when there is none.
std::filesystem::path cuda_toolkit(const std::filesystem::path& site_packages);

// Adds what builds ask for and wheels, which hold no links, leave out: lib64, and libcudart.so beside libcudart.so.13.
void link_libraries(const std::filesystem::path& toolkit);

// nvcc's compiler (nvidia-nvvm) writes PTX of its own release, and an older assembler (nvidia-cuda-nvcc) refuses that.
// cuda-toolkit 13.0 and 13.1 let a resolver take the newest compiler.
struct NewerCompiler {
  std::string nvcc;                 // "13.0.88"
  std::string nvvm;                 // "13.5.37"
  std::string requirement() const;  // that mends it: "nvidia-nvvm==13.0.*"
};

// Of package, normalized, to version.
std::optional<NewerCompiler> newer_compiler(const std::map<std::string, std::string>& versions);

}  // namespace sealift::packager
