// SPDX-License-Identifier: Apache-2.0
// The bundle as a CycloneDX 1.6 SBOM. Source: cyclonedx.org, JSON schema of version 1.6, by which the test
// sbom_schema_test.sh judges what is written here.
#pragma once

#include <string>

#include "packager/papers.hpp"

namespace sealift::packager {

// What an entry is to people: "wheel", "interpreter", "program", "model", "data" or "file".
std::string_view sort_of(const bundle::Entry& entry);

std::string sbom_json(const PaperFacts& facts);

}  // namespace sealift::packager
