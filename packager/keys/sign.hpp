// SPDX-License-Identifier: Apache-2.0
// `sealift-pack sign`: adds signatures to a root or to a bundle's seal without touching a volume; exports the exact
// bytes for a key that is kept elsewhere (HSM, UKey) and imports its signature; puts a newer chain of roots into a
// seal.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "packager/keys/role_status.hpp"
#include "sealift/bundle/trust/seal.hpp"

namespace sealift::packager {

struct SignOptions {
  std::filesystem::path file;                // a root file, a bundle's folder or its seal
  std::vector<std::filesystem::path> keys;   // private keys that sign
  std::vector<std::filesystem::path> roots;  // of a bundle: the chain that replaces the one in the seal
  std::filesystem::path export_to;           // gets the bytes to sign
  std::filesystem::path import_from;         // the signature's bytes, made elsewhere
  std::filesystem::path public_key;          // whose it is
  std::string passphrase;
};

struct SignResult {
  std::filesystem::path file;
  bundle::Digest digest;  // of the signed document: a root's fingerprint, a bundle's identity
  std::vector<bundle::Digest> signers;
  std::vector<RoleStatus> roles;
};

// Throws Usage for a key without a role, Signature for one that is not valid; the file is then unchanged.
SignResult sign(const SignOptions& options);

// The envelopes of root files, in order, held to every rule of a chain.
std::vector<bundle::Envelope> read_roots(const std::vector<std::filesystem::path>& files);
// Throws Usage unless the newest root of `chain` lets `key` sign bundles.
void require_release_role(const std::vector<bundle::Envelope>& chain, const bundle::PublicKey& key);

}  // namespace sealift::packager
