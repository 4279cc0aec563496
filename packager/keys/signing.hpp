// SPDX-License-Identifier: Apache-2.0
// Who signs a bundle, and the roots that let them: read and judged before the long work of `create` and `recut` begins,
// so that a wrong passphrase or a key without a role costs seconds.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sealift/bundle/trust/envelope.hpp"
#include "sealift/bundle/trust/private_key.hpp"

namespace sealift::packager {

struct Signing {
  std::vector<bundle::Envelope> roots;  // the chain that travels along, oldest first
  std::vector<bundle::PrivateKey> keys;
  std::vector<std::string> warnings;  // about the newest root's time

  std::vector<bundle::Digest> signers() const;  // the keys' identities
};

// Throws as read_private_key does, Usage for a key that the newest of `roots` does not let sign bundles, and Revoked
// when that root has expired and is strict: no site would take what it signs.
Signing read_signing(std::vector<bundle::Envelope> roots, const std::vector<std::filesystem::path>& keys,
                     const std::string& passphrase);

}  // namespace sealift::packager
