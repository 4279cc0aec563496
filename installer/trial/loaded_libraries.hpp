// SPDX-License-Identifier: Apache-2.0
// Which libraries a generation's interpreter really loads: starts it, lets it import what the bundle named, and reads
// the kernel's own list of what it maps. What RUNPATH says on paper is proved here, or not.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace sealift::installer {

struct LoadedLibraries {
  std::vector<std::string> inside;   // below the generation, as the kernel names them
  std::vector<std::string> allowed;  // the C library and the GPU's driver, which are the host's
  std::vector<std::string> outside;  // anything else that is executable
  std::string fault;                 // why the interpreter did not get so far; empty: it did
};

LoadedLibraries loaded_libraries(const std::filesystem::path& generation, const std::string& interpreter,
                                 const std::vector<std::string>& imports,
                                 std::chrono::seconds patience = std::chrono::minutes(10));

}  // namespace sealift::installer
