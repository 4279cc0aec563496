// SPDX-License-Identifier: Apache-2.0
// Which libraries a generation's interpreter really loads: it is started, imports what the bundle names, and the
// kernel's list of its mappings is read. This shows whether the RUNPATHs work on this machine.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace sealift::installer {

struct LoadedLibraries {
  std::vector<std::string> inside;   // below the generation, as the kernel names them
  std::vector<std::string> allowed;  // of the host's C library and GPU driver
  std::vector<std::string> outside;  // all other executable mappings
  std::string fault;                 // why the imports failed; empty: they did not
};

LoadedLibraries loaded_libraries(const std::filesystem::path& generation, const std::string& interpreter,
                                 const std::vector<std::string>& imports,
                                 std::chrono::seconds patience = std::chrono::minutes(10));

}  // namespace sealift::installer
