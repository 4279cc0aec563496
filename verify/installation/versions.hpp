// SPDX-License-Identifier: Apache-2.0
// Which Python distributions are installed, and which the bundle says are.
// Measured by installation.versions.
// Names are compared as PyPI compares them, so that Foo.Bar and foo_bar are one.
#pragma once

#include "verify/verdict/json.hpp"

#include <filesystem>
#include <map>
#include <string>

namespace sealift::verify {

/// Distribution -> version; names normalized as PEP 503 says.
using Versions = std::map<std::string, std::string>;

/// Of the folders NAME-VERSION.dist-info in `site_packages`.
Versions installed_versions(const std::filesystem::path& site_packages);

/// Of the wheels among the entries of a generation.json.
Versions versions_of_record(const nlohmann::json& record);

/// Of the components of a CycloneDX document that have a purl of PyPI. Throws std::invalid_argument on another
/// document.
Versions versions_of_sbom(const nlohmann::json& sbom);

}  // namespace sealift::verify
