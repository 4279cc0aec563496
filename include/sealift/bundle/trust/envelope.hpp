// SPDX-License-Identifier: Apache-2.0
// A signed document: DSSE around its exact bytes, with the keys that signed. Roots and bundles are both carried so;
// `payload_type` is part of what is signed, so one cannot be passed off as the other. One line of JSON, one spelling:
// there is no bit in an envelope that can change without being noticed. (secure-systems-lab/dsse, protocol.md)
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/trust/private_key.hpp"

namespace sealift::bundle {

inline constexpr std::size_t kMaxSignatures = 64;
inline constexpr std::size_t kMaxEnvelopeShell = std::size_t{4} << 20;  // all but the payload; 64 signatures are less

struct Envelope {
  struct Signature {
    Bytes spki;  // the key that made it; what it counts for is decided by a root
    Bytes bytes;
  };

  std::string payload_type;
  std::string payload;                     // the document, byte for byte
  std::map<Digest, Signature> signatures;  // by key id, so a key has at most one

  Digest digest() const { return sha256(as_bytes(payload)); }
};

// DSSE's pre-authentication encoding: what a signature is over.
Bytes pre_authentication_encoding(std::string_view payload_type, std::string_view payload);
Bytes message_of(const Envelope& envelope);

// One line, with its line break.
std::string write_envelope(const Envelope& envelope);
// Throws Format unless `line` is byte for byte what write_envelope would write. Takes little more memory than the line:
// nobody has signed these bytes yet.
Envelope parse_envelope(std::string_view line, std::string_view where);

// What each signature is worth by itself: Holds or CannotCheck, by key id. Throws Signature at the first that is
// broken, since then somebody changed something; it does not help that another one holds. `properties` as for
// PublicKey::check. With `wanted`, only the signatures by keys that it names are looked at and returned.
std::map<Digest, Verdict> check_signatures(const Envelope& envelope, std::string_view where,
                                           const char* properties = nullptr,
                                           const std::function<bool(const Digest&)>& wanted = {});

// Throws `code` unless the document is of the type that the caller's role signs: who verifies or signs a root names a
// root's type, who verifies or signs a bundle a bundle's, so neither can stand in for the other.
void require_payload_type(const Envelope& envelope, std::string_view type, ErrorCode code, std::string what,
                          std::string_view where);

// Takes in a signature that was made elsewhere; throws Signature unless it holds.
void add_signature(Envelope& envelope, const PublicKey& key, Bytes signature);
// Signs.
void add_signature(Envelope& envelope, const PrivateKey& key);

}  // namespace sealift::bundle
