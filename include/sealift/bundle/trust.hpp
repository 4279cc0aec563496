// SPDX-License-Identifier: Apache-2.0
// Whose signature this site accepts: pinned key fingerprints, and the check of a seal against them.
// The medium says which keys signed; only the pins say which of them count.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/seal.hpp"

namespace sealift::bundle {

// Fingerprints that the operator pinned, by hand or earlier. Empty trusts nobody.
struct TrustedKeys {
  std::vector<Digest> fingerprints;

  bool contains(const Digest& fingerprint) const {
    return std::find(fingerprints.begin(), fingerprints.end(), fingerprint) != fingerprints.end();
  }
};

// 64 hexadecimal digits, optionally after "sha256:" and with ':' or spaces between groups, as people copy them.
inline Digest parse_fingerprint(std::string_view text) {
  std::string digits;
  std::string_view body = text.starts_with("sha256:") ? text.substr(7) : text;
  for (const char c : body)
    if (c != ':' && c != ' ' && c != '\n')
      digits.push_back(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
  const std::optional<Digest> digest = Digest::from_hex(digits);
  if (!digest)
    throw Error(ErrorCode::Usage,
                {.what = "this is not a key fingerprint",
                 .expected = "sha256: and 64 hexadecimal digits, as `sealift-pack keygen` printed them",
                 .got = std::string(text.substr(0, 100))});
  return *digest;
}

struct SealCheck {
  Digest signer;  // the pinned key that signed
};

// Throws Signature unless a pinned key signed exactly these manifest bytes; every signature on the seal must hold.
inline SealCheck check_seal(const Seal& seal, const TrustedKeys& trusted, std::string_view where) {
  if (seal.payload_type != kBundlePayloadType)
    throw Error(ErrorCode::CannotCheck, {.what = "the seal is for something else",
                                         .where = std::string(where),
                                         .expected = std::string(kBundlePayloadType),
                                         .got = seal.payload_type});
  const Bytes message = pre_authentication_encoding(seal.payload_type, seal.payload);
  std::optional<Digest> signer;
  std::string signed_by;
  for (const Seal::Signature& signature : seal.signatures) {
    const PublicKey key = PublicKey::from_spki(signature.spki, where);
    if (!key.accepts(message, signature.bytes))
      throw Error(ErrorCode::Signature, {.what = "a signature does not hold: the manifest or the signature was changed",
                                         .where = std::string(where) + ", key sha256:" + key.fingerprint().hex(),
                                         .next = "copy the seal again from its source; if it stays, do not use it"});
    signed_by += (signed_by.empty() ? "sha256:" : ", sha256:") + key.fingerprint().hex();
    if (!signer && trusted.contains(key.fingerprint())) signer = key.fingerprint();
  }
  if (!signer) {
    std::string expected;
    for (const Digest& fingerprint : trusted.fingerprints)
      expected += (expected.empty() ? "sha256:" : ", sha256:") + fingerprint.hex();
    throw Error(ErrorCode::Signature,
                {.what = "no key that this site trusts signed the bundle",
                 .where = std::string(where),
                 .expected = expected.empty() ? "a pinned key; none is pinned" : expected,
                 .got = signed_by.empty() ? "no signature at all" : signed_by,
                 .next = "compare the fingerprint with the one the sender gave you by another way"});
  }
  return {*signer};
}

}  // namespace sealift::bundle
