// SPDX-License-Identifier: Apache-2.0
// How a signature comes: by private keys that are here, or, for a key in an HSM or UKey, as the exact bytes that go out
// and the signature that comes back. `sign` and `root sign` share it; what may be signed, and by whom, is theirs.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/host/progress.hpp"
#include "sealift/bundle/trust/envelope.hpp"

namespace sealift::packager {

struct NewSignature {
  std::vector<std::filesystem::path> keys;  // private keys that sign
  std::filesystem::path export_to;          // gets the bytes to sign
  std::filesystem::path import_from;        // the signature's bytes, made elsewhere
  std::filesystem::path public_key;         // whose it is; with export_to: whose it will be
  std::string passphrase;
};

// The roles that a key has for the document; throws Usage or Revoked for a key that may not sign it.
using RolesOfKey = std::function<std::string(const bundle::PublicKey&)>;

// Throws Usage unless exactly one thing is asked for; `otherwise` is asked for without a key (a newer chain of roots).
void check_ways(const NewSignature& how, bool otherwise);

// Adds the signatures to `envelope`, or writes the export and changes nothing; every key is judged before the first one
// signs. Throws Signature for a signature that does not hold.
void add_new_signatures(const NewSignature& how, bundle::Envelope& envelope, const RolesOfKey& roles_of,
                        bundle::Progress& progress);

// Held from before the file is read until its next version has replaced it: of two signers at once one would lose its
// signature. Throws Conflict while another process holds it. Where a file system has no locks nothing is held.
bundle::Descriptor lock_signed(const std::filesystem::path& file);

}  // namespace sealift::packager
