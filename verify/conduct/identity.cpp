// SPDX-License-Identifier: Apache-2.0
// The identity of the installed bundle, from the generation record.
// See identity.hpp.
// The few keys that are needed are read, so that a newer record does not end a verification.
#include "verify/conduct/identity.hpp"

#include <sys/utsname.h>

#include <fstream>
#include <stdexcept>

namespace sealift::verify {

std::optional<BundleIdentity> bundle_of(const std::filesystem::path& prefix) {
  const auto file = prefix / "generation.json";
  if (!std::filesystem::exists(file)) return std::nullopt;
  std::ifstream in(file);
  try {
    const auto json = nlohmann::json::parse(in);
    BundleIdentity bundle{
        json.at("name"), std::to_string(json.at("version").get<std::uint64_t>()), json.at("identity"), {}};
    for (const auto& signer : json.at("signers")) bundle.signers.push_back(signer.get<std::string>());
    return bundle;
  } catch (const nlohmann::json::exception& error) {
    throw std::invalid_argument(file.string() + " cannot be read: " + error.what() + "; run: sealift-install doctor");
  }
}

std::string system_of_host() {
  utsname name{};
  uname(&name);
  std::string driver;
  std::ifstream file("/proc/driver/nvidia/version");
  std::getline(file, driver);
  return std::string(name.release) + " " + name.version + (driver.empty() ? "" : ", " + driver);
}

std::string identity_of(const Site& site, const std::optional<BundleIdentity>& bundle, const std::string& program,
                        const nlohmann::json& machines) {
  return nlohmann::json{{"bundle", bundle ? bundle->manifest_sha256 : ""},
                        {"program", program},
                        {"ranks", site.world_size},
                        {"level", static_cast<int>(site.level)},
                        {"seed", site.seed},
                        {"own_network", site.own_network},
                        {"expected", site.expected},
                        {"machines", machines}}
      .dump();
}

}  // namespace sealift::verify
