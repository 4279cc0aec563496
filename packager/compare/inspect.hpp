// SPDX-License-Identifier: Apache-2.0
// `sealift-pack inspect`: what a bundle says it is, and who signed that. Without a root's fingerprint to begin from,
// everything shown is the bundle's own claim, and the report says so; only `bundle::verify` makes it more than that.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bundle/core/json.hpp"
#include "packager/keys/role_status.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::packager {

struct InspectReport {
  bundle::Manifest manifest;
  bundle::Digest identity;              // SHA-256 of the manifest
  std::vector<bundle::Digest> signers;  // keys whose signature is there; with `trusted`: the ones that count
  std::vector<bundle::SignedRoot> roots;
  std::vector<RoleStatus> roles;
  bool trusted = false;  // the chain begins at the root that was named, and its thresholds are met
  std::vector<std::string> warnings;
};

// With a root's fingerprint: throws unless bundle::verify accepts. Without: parses the seal, and throws Signature only
// when a signature does not hold. The payload is not read either way.
InspectReport inspect(const std::filesystem::path& bundle, const std::optional<bundle::Digest>& fingerprint);

std::string inspect_text(const InspectReport& report);
bundle::Json inspect_json(const InspectReport& report);

}  // namespace sealift::packager
