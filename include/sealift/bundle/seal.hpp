// SPDX-License-Identifier: Apache-2.0
// The small signed file of a bundle: a DSSE envelope around the manifest's exact bytes, with the keys that signed it.
// Parsing accepts one spelling only, so there is no bit in a seal that can change without being noticed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/json.hpp"
#include "sealift/bundle/signature.hpp"

namespace sealift::bundle {

inline constexpr std::string_view kBundlePayloadType = "application/vnd.sealift.bundle.v1+json";
inline constexpr std::uint64_t kMaxSealSize = std::uint64_t{64} << 20;
inline constexpr std::size_t kMaxSignatures = 64;

// DSSE's pre-authentication encoding: what a signature is over. (secure-systems-lab/dsse, protocol.md)
inline Bytes pre_authentication_encoding(std::string_view payload_type, std::string_view payload) {
  std::string text = "DSSEv1 " + std::to_string(payload_type.size()) + " ";
  text.append(payload_type).append(" ").append(std::to_string(payload.size())).append(" ").append(payload);
  const ByteView view = as_bytes(text);
  return {view.begin(), view.end()};
}

struct Seal {
  struct Signature {
    Bytes spki;  // the key that made it; trusted only if its fingerprint is
    Bytes bytes;
  };

  std::string payload_type{kBundlePayloadType};
  std::string payload;  // the manifest, byte for byte
  std::vector<Signature> signatures;
};

inline std::string write_seal(const Seal& seal) {
  Json signatures = Json::array();
  for (const Seal::Signature& signature : seal.signatures)
    signatures.push_back({{"keyid", sha256(signature.spki).hex()},
                          {"sig", to_base64(signature.bytes)},
                          {"spki", to_base64(signature.spki)}});
  return write_json({{"payload", to_base64(as_bytes(seal.payload))},
                     {"payloadType", seal.payload_type},
                     {"signatures", std::move(signatures)}}) +
         "\n";
}

// Throws Format unless `text` is byte for byte what write_seal would write.
inline Seal parse_seal(std::string_view text, std::string_view where) {
  const auto decode = [where](const std::string& encoded, const char* what) {
    std::optional<Bytes> bytes = from_base64(encoded);
    if (!bytes) detail::refuse_json(where, std::string(what) + " is not canonical base64");
    return *std::move(bytes);
  };
  const Json root = parse_json(text, where);
  JsonObject object(root, std::string(where));
  Seal seal;
  seal.payload_type = object.string("payloadType", 256);
  seal.payload = as_text(decode(object.string("payload", kMaxSealSize), "payload"));
  for (const Json& item : object.array("signatures", kMaxSignatures)) {
    JsonObject entry(item, std::string(where) + ".signatures");
    Seal::Signature signature{.spki = decode(entry.string("spki"), "spki"),
                              .bytes = decode(entry.string("sig"), "sig")};
    entry.string("keyid");
    entry.done();
    seal.signatures.push_back(std::move(signature));
  }
  object.done();
  if (write_seal(seal) != text)
    throw Error(ErrorCode::Format, {.what = "the seal is not spelled as it was written",
                                    .where = std::string(where),
                                    .expected = "the canonical form (sorted keys, no spaces, keyid = SHA-256 of spki)",
                                    .next = "copy the seal again from its source"});
  return seal;
}

inline void add_signature(Seal& seal, const PrivateKey& key) {
  seal.signatures.push_back({.spki = key.public_key().spki(),
                             .bytes = key.sign(pre_authentication_encoding(seal.payload_type, seal.payload))});
}

}  // namespace sealift::bundle
