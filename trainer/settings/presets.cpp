// SPDX-License-Identifier: Apache-2.0
// Where presets lie.
// See presets.hpp.
// Found from the program's own place, since a launcher may have changed the folder and argv.
#include "trainer/settings/presets.hpp"

#include "trainer/own_bundle.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <vector>

namespace sealift::trainer {
namespace {

std::filesystem::path folder() {
  const char* variable = std::getenv("SEALIFT_TRAIN_PRESETS");
  return variable ? std::filesystem::path(variable) : own_root() / "share/sealift/presets";
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
