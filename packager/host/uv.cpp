// SPDX-License-Identifier: Apache-2.0
// Chooses uv's variables; see uv.hpp. uv's own list of certificates does not know the authority of a network that
// intercepts TLS.
#include "packager/host/uv.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "packager/host/git_login.hpp"
#include "packager/host/own_variables.hpp"
#include "packager/host/trusted_certificates.hpp"
#include "packager/host/url.hpp"

namespace sealift::packager {

namespace {

// uv keeps a page of an index until its end, and there are servers whose pages have none. ms-swift[all] and vLLM, asked
// with an empty cache, take it 0.9 GB.
constexpr std::uint64_t kMostMemory = std::uint64_t{4} << 30;

constexpr std::array kPassedToUv = {"UV_DEFAULT_INDEX",        "UV_CACHE_DIR",       "UV_NO_CACHE",
                                    "UV_HTTP_TIMEOUT",         "UV_OFFLINE",         "UV_PYTHON_INSTALL_DIR",
                                    "UV_CONCURRENT_DOWNLOADS", "UV_REQUEST_TIMEOUT", "UV_KEYRING_PROVIDER"};

// The credentials of an index that the job names.
bool is_credential(std::string_view name) {
  return name.starts_with("UV_INDEX_") && (name.ends_with("_USERNAME") || name.ends_with("_PASSWORD"));
}

bool is_passed(std::string_view name) {
  return is_credential(name) || std::find(kPassedToUv.begin(), kPassedToUv.end(), name) != kPassedToUv.end();
}

std::map<std::string, std::string> our_uv_variables() {
  std::map<std::string, std::string> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (text.starts_with("UV_")) found[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
  }
  return found;
}

}  // namespace

ProcessResult run_uv(std::vector<std::string> command, const std::map<std::string, std::string>& more,
                     const Watch& watch) {
  std::map<std::string, std::string> environment = {{"UV_PYTHON_DOWNLOADS", "never"},
                                                    {"NO_COLOR", "1"},
                                                    {"UV_SYSTEM_CERTS", "1"},
                                                    {"UV_NATIVE_TLS", "1"}};  // the name in older versions
  for (const auto& [name, value] : our_uv_variables())
    if (is_passed(name) && own_variable(name.c_str())) environment[name] = value;
  environment.merge(keyring_variables());
  if (const std::string file = trusted_certificates(); !file.empty()) environment["SSL_CERT_FILE"] = file;
  environment.insert(more.begin(), more.end());
  command.emplace_back("--no-config");
  ProcessResult result = run_process(command, environment, {.most_memory = kMostMemory}, watch);
  result.err = without_queries(without_logins(result.err));
  return result;
}

std::map<std::string, std::string> keyring_variables() {
  std::map<std::string, std::string> found;
  const char* const provider = std::getenv("UV_KEYRING_PROVIDER");
  if (provider == nullptr || std::string_view(provider) != "subprocess") return found;
  for (const char* name : {"DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "PYTHON_KEYRING_BACKEND",
                           "GOOGLE_APPLICATION_CREDENTIALS"})
    if (const std::optional<std::string> value = own_variable(name)) found[name] = *value;
  return found;
}

std::vector<std::string> ignored_uv_variables() {
  static constexpr std::array<std::string_view, 11> kDeciding = {
      "UV_INDEX",      "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS",    "UV_INDEX_STRATEGY", "UV_CONFIG_FILE",
      "UV_CONSTRAINT", "UV_OVERRIDE",  "UV_PRERELEASE",      "UV_EXCLUDE_NEWER", "UV_TORCH_BACKEND"};
  std::vector<std::string> names;
  for (const auto& [name, value] : our_uv_variables())
    if (std::find(kDeciding.begin(), kDeciding.end(), name) != kDeciding.end()) names.push_back(name);
  return names;
}

}  // namespace sealift::packager
