// SPDX-License-Identifier: Apache-2.0
// Signed documents: one spelling, no bit that can change, no signature that can be taken along to another document.
#include "sealift/bundle/trust/envelope.hpp"

#include "bundle/core/json.hpp"
#include "bundle/core/openssl.hpp"
#include "bundle/trust/openssl_keys.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift::bundle;

namespace {

constexpr std::string_view kType = "application/x-test";

Envelope document(const PrivateKey& key, std::string payload = "{\"a\":1}") {
  Envelope envelope{.payload_type = std::string(kType), .payload = std::move(payload), .signatures = {}};
  add_signature(envelope, key);
  return envelope;
}

}  // namespace

TEST_CASE("what is signed is DSSE's pre-authentication encoding") {
  CHECK(as_text(pre_authentication_encoding("http://example.com/HelloWorld", "hello world")) ==
        "DSSEv1 29 http://example.com/HelloWorld 11 hello world");
}

TEST_CASE("an envelope is read back as it was written, whatever the order of its signatures") {
  const PrivateKey a = PrivateKey::generate(), b = PrivateKey::generate(Algorithm::EcdsaP384);
  Envelope first = document(a), second = document(b);
  second.signatures.insert(*first.signatures.begin());
  first.signatures.insert(*second.signatures.find(b.public_key().id()));
  CHECK(write_envelope(first) == write_envelope(second));
  const Envelope again = parse_envelope(write_envelope(first), "e");
  CHECK(again.payload == "{\"a\":1}");
  CHECK(check_signatures(again, "e").size() == 2);
  CHECK(write_envelope(again).find('\n') == write_envelope(again).size() - 1);
}

TEST_CASE("every flipped bit of an envelope is refused, with every kind of signature") {
  for (const AlgorithmFacts& facts : kAlgorithms) {
    const std::string good = write_envelope(document(PrivateKey::generate(facts.algorithm)));
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
      std::string bad = good;
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
      CAPTURE(bit);
      CHECK_THROWS_AS(check_signatures(parse_envelope(bad, "e"), "e"), Error);
    }
  }
}

TEST_CASE("an envelope has one spelling") {
  const std::string good = write_envelope(document(PrivateKey::generate()));
  CHECK_REFUSED(parse_envelope(good + "\n", "e"), Format, "spelled");
  CHECK_REFUSED(parse_envelope(good.substr(0, good.size() - 1), "e"), Format, "spelled");
  CHECK_REFUSED(parse_envelope(" " + good, "e"), Format, "spelled");
  CHECK_REFUSED(parse_envelope("", "the file"), Format, "the file");
}

TEST_CASE("a key signs once: a second signature of it, under its id or another, is refused") {
  const PrivateKey key = PrivateKey::generate(Algorithm::EcdsaP256);
  const Json one = Json::parse(write_envelope(document(key)));
  Json twice = one, renamed = one;
  twice["signatures"].push_back(one["signatures"][0]);
  CHECK_REFUSED(parse_envelope(write_json(twice) + "\n", "e"), Format, "signed twice");
  Json other = one["signatures"][0];
  other["keyid"] = std::string(64, '0');
  renamed["signatures"].insert(renamed["signatures"].begin(), other);
  CHECK_REFUSED(parse_envelope(write_json(renamed) + "\n", "e"), Format, "not the SHA-256 of its key");
  Envelope envelope = document(key);
  add_signature(envelope, key);  // another signature each time, but the key's only one
  CHECK(envelope.signatures.size() == 1);
}

TEST_CASE("a good signature does not excuse a broken one beside it") {
  Envelope envelope = document(PrivateKey::generate());
  const PrivateKey other = PrivateKey::generate();
  add_signature(envelope, other);
  envelope.signatures.at(other.public_key().id()).bytes[5] ^= std::byte{1};
  CHECK_REFUSED(check_signatures(envelope, "e"), Signature, other.public_key().id().hex());
}

TEST_CASE("a signature over the bare document, another type or another document does not hold") {
  const PrivateKey key = PrivateKey::generate();
  const Digest id = key.public_key().id();
  Envelope envelope = document(key);
  envelope.signatures.at(id).bytes = key.sign(as_bytes(envelope.payload));
  CHECK_REFUSED(check_signatures(envelope, "e"), Signature, "does not hold");
  Envelope typed = document(key);
  typed.payload_type = "application/x-other";
  CHECK_REFUSED(check_signatures(typed, "e"), Signature, "does not hold");
  Envelope moved = document(key);
  moved.payload = "{\"a\":2}";
  CHECK_REFUSED(check_signatures(moved, "e"), Signature, moved.digest().hex());
}

TEST_CASE("a signature made elsewhere is checked before it is taken in") {
  const PrivateKey key = PrivateKey::generate(Algorithm::Sm2);
  Envelope envelope{.payload_type = std::string(kType), .payload = "{}", .signatures = {}};
  CHECK_REFUSED(add_signature(envelope, key.public_key(), key.sign(as_bytes("{}"))), Signature,
                "SM2 ID 1234567812345678");
  CHECK(envelope.signatures.empty());
  add_signature(envelope, key.public_key(), key.sign(message_of(envelope)));
  CHECK(check_signatures(envelope, "e").at(key.public_key().id()) == Verdict::Holds);
}

TEST_CASE("a signature of a kind that nobody here knows neither holds nor breaks anything") {
  Envelope envelope = document(PrivateKey::generate());
  const KeyHandle rsa(EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", std::size_t{2048}));
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(rsa.get(), &der);
  const Bytes spki = detail::take_der(der, size);
  envelope.signatures[sha256(spki)] = {.spki = spki, .bytes = Bytes(256)};
  CHECK(check_signatures(parse_envelope(write_envelope(envelope), "e"), "e").at(sha256(spki)) == Verdict::CannotCheck);
}
