// SPDX-License-Identifier: Apache-2.0
// `sealift-pack inspect`: what a bundle says it is, and who says so. Without a fingerprint to compare with, everything
// shown is the bundle's own claim, and the report says so; only `bundle::verify` makes it more than that.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sealift/bundle/manifest.hpp"

namespace sealift::packager {

struct InspectReport {
  bundle::Manifest manifest;
  bundle::Digest identity;              // SHA-256 of the manifest
  std::vector<bundle::Digest> signers;  // keys whose signature holds
  bool trusted = false;                 // one of them is the key that was named
};

// With a fingerprint: throws unless that key signed (bundle::verify). Without: parses the seal, and throws Signature
// only when a signature does not hold. The payload is not read either way.
InspectReport inspect(const std::filesystem::path& bundle, const std::optional<bundle::Digest>& fingerprint);

std::string inspect_text(const InspectReport& report);
std::string inspect_json(const InspectReport& report);

}  // namespace sealift::packager
