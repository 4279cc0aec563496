// SPDX-License-Identifier: Apache-2.0
// Which variables lead to code or settings, asked by the one rule for paths; see own_variables.hpp. A caller who is not
// root may have a site's shared folders.
#include "packager/host/own_variables.hpp"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "bundle/host/trusted_path.hpp"

namespace sealift::packager {

namespace {

constexpr std::array<std::string_view, 12> kLeading = {
    "HOME",      "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",         "XDG_RUNTIME_DIR", "TMPDIR",
    "GNUPGHOME", "DOCKER_CONFIG",  "UV_CACHE_DIR",    "UV_PYTHON_INSTALL_DIR", "CARGO_HOME",      "RUSTUP_HOME"};

// What would be laid down in the folder is asked about: the folder itself may be sticky, as /tmp.
bool is_foreign(const char* value, bundle::PathFault& fault) {
  if (*value == '\0') return false;
  const std::string inside = (std::filesystem::path(value) / "new").string();
  return bundle::find_path_fault(inside.c_str(), bundle::Above::Site, fault);
}

std::string home_of_account() {
  const passwd* const account = ::getpwuid(::geteuid());
  return account != nullptr && account->pw_dir != nullptr ? account->pw_dir : "/";
}

}  // namespace

std::optional<std::string> own_variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  bundle::PathFault fault;
  if (std::find(kLeading.begin(), kLeading.end(), name) == kLeading.end() || !is_foreign(value, fault)) return value;
  if (std::string_view(name) == "HOME") return home_of_account();
  return std::nullopt;
}

std::vector<std::string> foreign_variables() {
  std::vector<std::string> found;
  for (const std::string_view name : kLeading) {
    const char* const value = std::getenv(std::string(name).c_str());
    bundle::PathFault fault;
    if (value != nullptr && is_foreign(value, fault))
      found.push_back(std::string(name) + "=" + value +
                      (fault.kind == bundle::PathFault::Kind::Owner ? ", of user " + std::to_string(fault.owner)
                                                                    : ", where others may write"));
  }
  return found;
}

}  // namespace sealift::packager
