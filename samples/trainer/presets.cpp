// SPDX-License-Identifier: Apache-2.0
// Where presets lie.
// See presets.hpp. The program's own path is the kernel's, since a launcher may have changed the folder and argv.
// A bare host may not have /proc mounted; then it is the path that the kernel was given.
#include "presets.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include <sys/auxv.h>

namespace sealift::trainer {
namespace {

std::filesystem::path program() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::absolute(reinterpret_cast<const char*>(getauxval(AT_EXECFN))) : path;
}

std::filesystem::path folder() {
  const char* variable = std::getenv("SEALIFT_TRAIN_PRESETS");
  return variable ? std::filesystem::path(variable) : program().parent_path().parent_path() / "share/sealift/presets";
}

std::string names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;  // then there are none
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

}  // namespace

std::filesystem::path find_preset(const std::string& name) {
  const std::filesystem::path path(name);
  if (path.has_extension()) return path;
  const bool is_name = !name.empty() && name.find('/') == std::string::npos;
  auto file = folder() / (name + ".toml");
  if (is_name && std::filesystem::exists(file)) return file;
  throw std::invalid_argument("there is no preset '" + name + "' in " + folder().string() +
                              "; there are: " + names_in(folder()) + "; or give a TOML file");
}

}  // namespace sealift::trainer
