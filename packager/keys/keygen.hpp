// SPDX-License-Identifier: Apache-2.0
// `sealift-pack keygen`: a new key pair; and, unless only a key is wanted, the smallest root there is: this one key
// signs roots and releases. Sites with more than one person make theirs with `root create`.
#pragma once

#include <filesystem>
#include <string>

#include "sealift/bundle/trust/envelope.hpp"
#include "sealift/bundle/trust/private_key.hpp"

namespace sealift::packager {

struct KeygenOptions {
  std::filesystem::path folder;
  bundle::Algorithm algorithm = bundle::Algorithm::Ed25519;
  std::string name;        // NAME.key and NAME.pub and nothing else; empty: release.key and a root
  std::string passphrase;  // empty: the key is not encrypted
};

// Root 1 of this one key, which signs roots and releases.
bundle::Envelope root_of_one_key(const bundle::PrivateKey& key);

// Writes NAME.key (PKCS#8 PEM, for its owner only) and NAME.pub (SPKI PEM); without a name also root.1.json and
// root.fingerprint. Throws Conflict when one of them exists. Returns the key's id, or the root's fingerprint.
bundle::Digest keygen(const KeygenOptions& options);

}  // namespace sealift::packager
