// SPDX-License-Identifier: Apache-2.0
// What a kernel's metadata.json asks of its environment. It is a stranger's text, read within bounds.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sealift::packager {

struct KernelNeed {
  std::string repo;
  std::string revision;  // "v1" for version 1
};

struct KernelMetadata {
  std::string loader;                 // the oldest release of the package kernels, "0.17"; empty: any
  std::vector<std::string> packages;  // Python packages that it imports, by their normalized names
  std::vector<KernelNeed> kernels;    // other kernels; loaders follow them since 0.17
};

// Throws Format naming `where`.
KernelMetadata read_kernel_metadata(const std::filesystem::path& file, const std::string& where);

}  // namespace sealift::packager
