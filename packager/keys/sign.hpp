// SPDX-License-Identifier: Apache-2.0
// `sealift-pack sign`: adds signatures to a bundle's seal without touching a volume, and nothing but a bundle: what it
// signs is parsed and judged from a root that the signer has pinned, and shown, before a key is opened. A root is
// signed by sign_root.hpp.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "packager/keys/new_signature.hpp"
#include "packager/keys/role_status.hpp"
#include "packager/keys/root_files.hpp"
#include "sealift/bundle/trust/seal.hpp"

namespace sealift::packager {

struct SignOptions : NewSignature {
  std::filesystem::path file;                 // of a bundle: its folder or its seal; else the root's file
  std::vector<std::filesystem::path> roots;   // of a bundle: the chain that replaces the one in the seal; of a root:
                                              // those before it
  std::optional<bundle::Digest> fingerprint;  // of the root that the signer has pinned
  std::filesystem::path trust;                // a trust folder, in place of the fingerprint; empty: none
  bool sandboxed_builds_only = false;         // of a bundle: one with other built wheels is not signed
};

struct SignResult {
  std::filesystem::path file;
  bundle::Digest digest;  // of the signed document: a root's fingerprint, a bundle's identity
  std::vector<bundle::Digest> signers;
  std::vector<RoleStatus> roles;
};

// What the signer goes by; throws Usage when nothing says whom they trust.
bundle::TrustState pinned_by(const SignOptions& options);

// Throws Usage for a key without a role, Signature for a signature or a chain that does not hold, Revoked for a bundle
// that was withdrawn, Conflict for builds that are not wanted, Format for anything but a bundle's manifest; the seal is
// then unchanged.
SignResult sign(const SignOptions& options, bundle::Progress& progress);

// "release", "release and site"; throws Usage or Revoked unless `root` lets `key` sign bundles.
std::string bundle_roles(const bundle::Root& root, const bundle::PublicKey& key);

}  // namespace sealift::packager
