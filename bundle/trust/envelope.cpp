// SPDX-License-Identifier: Apache-2.0
// Writes, reads, checks and signs envelopes; see envelope.hpp.
#include "sealift/bundle/trust/envelope.hpp"

#include <optional>
#include <utility>

#include "bundle/core/json.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::bundle {

Bytes pre_authentication_encoding(std::string_view payload_type, std::string_view payload) {
  std::string text = "DSSEv1 " + std::to_string(payload_type.size()) + " ";
  text.append(payload_type).append(" ").append(std::to_string(payload.size())).append(" ").append(payload);
  const ByteView view = as_bytes(text);
  return {view.begin(), view.end()};
}

Bytes message_of(const Envelope& envelope) {
  return pre_authentication_encoding(envelope.payload_type, envelope.payload);
}

std::string write_envelope(const Envelope& envelope) {
  Json signatures = Json::array();
  for (const auto& [id, signature] : envelope.signatures)
    signatures.push_back(
        {{"keyid", id.hex()}, {"sig", to_base64(signature.bytes)}, {"spki", to_base64(signature.spki)}});
  return write_json({{"payload", to_base64(as_bytes(envelope.payload))},
                     {"payloadType", envelope.payload_type},
                     {"signatures", std::move(signatures)}}) +
         "\n";
}

namespace {

constexpr std::string_view kEnvelopeOpening = "{\"payload\":\"";

bool is_canonical(const Envelope& envelope, std::string_view line_without_payload) {
  return write_envelope({.payload_type = envelope.payload_type, .payload = {}, .signatures = envelope.signatures}) ==
         line_without_payload;
}

}  // namespace

// The payload stands first and is decoded where it stands: nobody has signed these bytes yet, so what they make of
// memory is little more than what they say.
Envelope parse_envelope(std::string_view line, std::string_view where) {
  const auto decode = [where](std::string_view encoded, const char* what) {
    std::optional<Bytes> bytes = from_base64(encoded);
    if (!bytes) refuse_json(where, std::string(what) + " is not canonical base64");
    return *std::move(bytes);
  };
  const auto refuse_spelling = [where] {
    throw Error(ErrorCode::Format, {.what = "a signed document is not spelled as it was written",
                                    .where = std::string(where),
                                    .expected = "the canonical form (sorted keys and signatures, no spaces, one line)",
                                    .next = "copy it again from its source"});
  };
  std::string_view encoded;
  std::string shell;  // the line with an empty payload
  if (line.starts_with(kEnvelopeOpening)) {
    encoded = line.substr(kEnvelopeOpening.size());
    encoded = encoded.substr(0, encoded.find('"'));
    line.remove_prefix(kEnvelopeOpening.size() + encoded.size());
    shell = kEnvelopeOpening;
  }
  if (line.size() > kMaxEnvelopeShell) refuse_spelling();
  shell += line;
  // Three strings a signature, and a few around them.
  const Json root = parse_json(shell, where, 4 * kMaxSignatures + 8);
  JsonObject object(root, std::string(where));
  Envelope envelope;
  envelope.payload_type = object.string("payloadType", 256);
  const std::string spelled = object.string("payload", kMaxEnvelopeShell);
  envelope.payload = as_text(decode(spelled.empty() ? encoded : spelled, "payload"));
  for (const Json& item : object.array("signatures", kMaxSignatures)) {
    JsonObject entry(item, std::string(where) + ".signatures");
    Envelope::Signature signature{.spki = decode(entry.string("spki", 2 * kMaxSpki), "spki"),
                                  .bytes = decode(entry.string("sig", 16384), "sig")};
    const Digest id = entry.digest("keyid");
    entry.done();
    if (!envelope.signatures.emplace(id, std::move(signature)).second)
      refuse_json(entry.where(), "a key signed twice", fingerprint_text(id));
    if (id != sha256(envelope.signatures.at(id).spki))
      refuse_json(entry.where(), "a keyid is not the SHA-256 of its key", fingerprint_text(id));
  }
  object.done();
  if (!is_canonical(envelope, shell)) refuse_spelling();
  return envelope;
}

std::map<Digest, Verdict> check_signatures(const Envelope& envelope, std::string_view where, const char* properties,
                                           const std::function<bool(const Digest&)>& wanted) {
  const Bytes message = message_of(envelope);
  std::map<Digest, Verdict> verdicts;
  for (const auto& [id, signature] : envelope.signatures) {
    if (wanted && !wanted(id)) continue;
    const std::optional<PublicKey> key = PublicKey::known(signature.spki, where);
    const Verdict verdict = key ? key->check(message, signature.bytes, properties) : Verdict::CannotCheck;
    if (verdict == Verdict::Broken)
      throw Error(
          ErrorCode::Signature,
          {.what = "a signature does not hold: the document or the signature was changed",
           .where = std::string(where) + ", key " + fingerprint_text(id),
           .expected = name_of(key->algorithm()) + " over the document " + fingerprint_text(envelope.digest()),
           .next = key->algorithm() == Algorithm::Sm2
                       ? "copy it again from its source; made by another program: SM2 with SM3, and the SM2 ID " +
                             std::string(kSm2Identity)
                       : "copy it again from its source; if it stays, do not use it"});
    verdicts.emplace(id, verdict);
  }
  return verdicts;
}

void require_payload_type(const Envelope& envelope, std::string_view type, ErrorCode code, std::string what,
                          std::string_view where) {
  if (envelope.payload_type == type) return;
  throw Error(code, {.what = std::move(what),
                     .where = std::string(where),
                     .expected = std::string(type),
                     .got = SafePath::printable(envelope.payload_type)});
}

void add_signature(Envelope& envelope, const PublicKey& key, Bytes signature) {
  Envelope alone{.payload_type = envelope.payload_type, .payload = envelope.payload, .signatures = {}};
  alone.signatures[key.id()] = {.spki = key.spki(), .bytes = std::move(signature)};
  check_signatures(alone, "the new signature");
  envelope.signatures[key.id()] = std::move(alone.signatures[key.id()]);
}
void add_signature(Envelope& envelope, const PrivateKey& key) {
  add_signature(envelope, key.public_key(), key.sign(message_of(envelope)));
}

}  // namespace sealift::bundle
