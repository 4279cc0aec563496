// SPDX-License-Identifier: Apache-2.0
// Each key is held against the roots as soon as it is read; see signing.hpp.
#include "packager/keys/signing.hpp"

#include "packager/keys/key_file.hpp"
#include "packager/keys/sign.hpp"

namespace sealift::packager {

std::vector<bundle::Digest> Signing::signers() const {
  std::vector<bundle::Digest> signers;
  for (const bundle::PrivateKey& key : keys) signers.push_back(key.public_key().id());
  return signers;
}

Signing read_signing(std::vector<bundle::Envelope> roots, const std::vector<std::filesystem::path>& keys,
                     const std::string& passphrase) {
  Signing signing{.roots = std::move(roots), .keys = {}};
  const bundle::Root root = bundle::parse_root(signing.roots.back().payload, "root");
  for (const std::filesystem::path& file : keys) {
    signing.keys.push_back(read_private_key(file, passphrase));
    bundle_roles(root, signing.keys.back().public_key());
  }
  return signing;
}

}  // namespace sealift::packager
