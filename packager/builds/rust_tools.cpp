// SPDX-License-Identifier: Apache-2.0
#include "packager/builds/rust_tools.hpp"

#include <unistd.h>

#include "packager/host/own_variables.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;

namespace {

// What the variable says, or the folder `name` of the home.
fs::path folder_of(const char* variable, const char* name) {
  if (const auto said = own_variable(variable); said && fs::path(*said).is_absolute()) return *said;
  const auto home = own_variable("HOME");
  return home && fs::path(*home).is_absolute() ? fs::path(*home) / name : fs::path();
}

}  // namespace

fs::path rust_programs() {
  const fs::path folder = folder_of("CARGO_HOME", ".cargo");
  return folder.empty() ? folder : folder / "bin";
}

std::optional<RustTools> find_rust() {
  RustTools tools{.programs = rust_programs(), .toolchains = folder_of("RUSTUP_HOME", ".rustup")};
  if (tools.programs.empty() || ::access((tools.programs / "cargo").c_str(), X_OK) != 0) return std::nullopt;
  if (std::error_code error; !fs::is_directory(tools.toolchains, error)) tools.toolchains.clear();
  return tools;
}

}  // namespace sealift::packager
