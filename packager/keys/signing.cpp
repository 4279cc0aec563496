// SPDX-License-Identifier: Apache-2.0
// Each key is held against the roots as soon as it is read; see signing.hpp.
#include "packager/keys/signing.hpp"

#include <algorithm>

#include "packager/keys/key_file.hpp"
#include "packager/keys/sign.hpp"
#include "sealift/bundle/trust/acceptance.hpp"

namespace sealift::packager {

namespace {

// Held against this machine's clock, as the site will against its own: what it refuses is not packed.
std::vector<std::string> time_warnings(const bundle::Root& root) {
  try {
    return judge_time({}, root, bundle::system_time(), "--root");
  } catch (const bundle::Error& error) {
    bundle::Facts facts = error.facts();
    facts.next = "make the next root, sign it, and name both: sealift-pack root create ROOT.toml --previous OLD";
    throw bundle::Error(error.code(), std::move(facts));
  }
}

}  // namespace

std::vector<bundle::Digest> Signing::signers() const {
  std::vector<bundle::Digest> signers;
  for (const bundle::PrivateKey& key : keys) signers.push_back(key.public_key().id());
  return signers;
}

Signing read_signing(std::vector<bundle::Envelope> roots, const std::vector<std::filesystem::path>& keys,
                     const std::string& passphrase) {
  Signing signing{.roots = std::move(roots), .keys = {}, .warnings = {}};
  const bundle::Root root = bundle::parse_root(signing.roots.back().payload, "root");
  signing.warnings = time_warnings(root);
  for (const std::filesystem::path& file : keys) {
    bundle::PrivateKey key = read_private_key(file, passphrase);
    bundle_roles(root, key.public_key());
    const std::vector<bundle::Digest> known = signing.signers();  // a key that is named twice signs once
    if (std::find(known.begin(), known.end(), key.public_key().id()) == known.end())
      signing.keys.push_back(std::move(key));
  }
  return signing;
}

}  // namespace sealift::packager
