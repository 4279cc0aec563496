// SPDX-License-Identifier: Apache-2.0
// The bundle as a CycloneDX 1.6 SBOM. Source: cyclonedx.org, JSON schema of version 1.6, by which the test
// sbom_schema_test.sh judges what is written here.
#pragma once

#include <string>

#include "packager/documents/documents.hpp"

namespace sealift::packager {

// What an entry is to people: "wheel", "interpreter", "program", "model", "data", "deb" or "file".
std::string_view sort_of(const bundle::Entry& entry);

// Of a carried glibc: its COPYING.LIB and its files' heads. It has no metadata of its own in a bundle.
inline constexpr const char* kGlibcLicence = "LGPL-2.1-or-later";

std::string sbom_json(const PaperFacts& facts);

}  // namespace sealift::packager
