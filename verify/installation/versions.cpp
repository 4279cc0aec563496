// SPDX-License-Identifier: Apache-2.0
// Names of folders, wheels and purls.
// See versions.hpp.
// Entries other than wheels, and purls outside of PyPI, are left to doctor.
#include "verify/installation/versions.hpp"

#include <algorithm>
#include <stdexcept>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;

std::string project_name(const std::string& text) {
  std::string name;
  for (const char letter : text) {
    const bool is_separator = letter == '-' || letter == '_' || letter == '.';
    if (is_separator && (name.empty() || name.back() != '-')) name += '-';
    if (!is_separator) name += letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
  }
  return name;
}

/// "foo_bar-1.0" with whatever follows a second hyphen.
void add_stem(Versions& versions, const std::string& stem) {
  const auto first = stem.find('-');
  if (first == std::string::npos) return;
  const auto second = stem.find('-', first + 1);
  const auto version = stem.substr(first + 1, second == std::string::npos ? second : second - first - 1);
  // A project that is there twice has both, so that none hides the other.
  const auto [known, is_new] = versions.emplace(project_name(stem.substr(0, first)), version);
  if (is_new) return;
  known->second = std::min(known->second, version) + " and " + std::max(known->second, version);
}

/// %2B as +: versions with a local part.
std::string unescaped(std::string text) {
  for (auto at = text.find("%2B"); at != std::string::npos; at = text.find("%2B")) text.replace(at, 3, "+");
  return text;
}

}  // namespace

Versions installed_versions(const std::filesystem::path& site_packages) {
  Versions versions;
  for (const auto& entry : std::filesystem::directory_iterator(site_packages)) {
    const auto name = entry.path().filename().string();
    for (const std::string_view ending : {".dist-info", ".egg-info"}) {
      if (name.ends_with(ending)) add_stem(versions, name.substr(0, name.size() - ending.size()));
    }
  }
  return versions;
}

Versions versions_of_record(const Json& record) {
  Versions versions;
  for (const auto& entry : record.at("entries")) {
    const auto name = std::filesystem::path(entry.at("path").get<std::string>()).filename().string();
    if (name.ends_with(".whl")) add_stem(versions, name);
  }
  return versions;
}

Versions versions_of_sbom(const Json& sbom) {
  if (!sbom.is_object() || sbom.value("bomFormat", "") != "CycloneDX" || !sbom.contains("components")) {
    throw std::invalid_argument("expected a CycloneDX document with components");
  }
  constexpr std::string_view kPyPi = "pkg:pypi/";
  Versions versions;
  for (const auto& component : sbom.at("components")) {
    const auto purl = component.value("purl", std::string());
    const auto at = purl.find('@');
    if (!purl.starts_with(kPyPi) || at == std::string::npos) continue;
    versions[project_name(purl.substr(kPyPi.size(), at - kPyPi.size()))] =
        unescaped(purl.substr(at + 1, purl.find_first_of("?#", at) - at - 1));
  }
  return versions;
}

}  // namespace sealift::verify
