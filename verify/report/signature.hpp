// SPDX-License-Identifier: Apache-2.0
// A site's public key, what it signed, and the openssl commands that do the same by hand.
// After the digest list: `sign` prints the commands, `check-signature` checks.
// The kinds of keys are those of bundles (docs/keys.md): Ed25519, ECDSA P-384 and P-256, SM2 with SM3.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sealift::verify {

enum class KeyKind { Ed25519, EcdsaP384, EcdsaP256, Sm2 };

struct SiteKey {
  KeyKind kind = KeyKind::Ed25519;
  std::string spki;  ///< DER
  std::string id;    ///< hexadecimal SHA-256 of the SPKI, as bundles name keys
};

/// Reads a PEM file with one public key. Throws std::invalid_argument: no key, a private one, another kind.
SiteKey read_site_key(const std::filesystem::path& file);

/// True if `signature` is `key`'s of `message`.
bool signature_holds(const SiteKey& key, const std::string& message, const std::string& signature);

/// "Ed25519", "ECDSA P-384", …
std::string name_of(KeyKind kind);

/// The commands, a line each: sign the digest list in `folder`, verify the signature, verify the files.
std::vector<std::string> openssl_commands(KeyKind kind, const std::filesystem::path& folder,
                                          const std::string& public_key);

}  // namespace sealift::verify
