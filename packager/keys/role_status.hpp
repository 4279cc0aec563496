// SPDX-License-Identifier: Apache-2.0
// How many signatures each role has of how many it needs, for who signs and for who looks at a bundle.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bundle/core/json.hpp"
#include "sealift/bundle/trust/seal.hpp"

namespace sealift::packager {

struct RoleStatus {
  std::string role;
  std::uint64_t signatures = 0;
  std::uint64_t threshold = 0;
};

// Does `key` have the role `name` in `root`?
bool has_role(const bundle::Root& root, const std::string& name, const bundle::Digest& key);

// The keys that signed.
std::vector<bundle::Digest> signers_of(const bundle::Envelope& envelope);

// Of the roles that sign bundles, by `root`.
std::vector<RoleStatus> bundle_status(const bundle::Root& root, const bundle::Envelope& manifest);
// The same by the newest root of the seal.
std::vector<RoleStatus> bundle_status(const bundle::Seal& seal);
// Of the role that signs roots, by the root itself.
std::vector<RoleStatus> root_status(const bundle::Envelope& root);

// "release 1 of 2, site 0 of 1"
std::string text_of(const std::vector<RoleStatus>& roles);
bundle::Json roles_json(const std::vector<RoleStatus>& roles);
// Fingerprints of keys.
bundle::Json signers_json(const std::vector<bundle::Digest>& signers);

}  // namespace sealift::packager
