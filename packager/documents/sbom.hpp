// SPDX-License-Identifier: Apache-2.0
// The bundle as a CycloneDX 1.6 SBOM. Source: cyclonedx.org, JSON schema of version 1.6, by which the test
// sbom_schema_test.sh judges what is written here.
#pragma once

#include <string>

#include "packager/documents/bundle_facts.hpp"

namespace sealift::packager {

std::string sbom_json(const BundleFacts& facts);

}  // namespace sealift::packager
