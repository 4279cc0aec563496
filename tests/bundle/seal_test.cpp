// SPDX-License-Identifier: Apache-2.0
// Keys, signatures, seals and trust: only a pinned key's signature over these very bytes opens the gate.
#include "sealift/bundle/seal.hpp"

#include "sealift/bundle/trust.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift::bundle;

namespace {

const char kPrivatePem[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
    "-----END PRIVATE KEY-----\n";  // RFC 8032, section 7.1, TEST 1

Seal sealed(const PrivateKey& key, std::string payload = "{\"a\":1}") {
  Seal seal{.payload = std::move(payload)};
  add_signature(seal, key);
  return seal;
}

TrustedKeys trust(const PrivateKey& key) {
  return {.fingerprints = {key.public_key().fingerprint()}};
}

}  // namespace

TEST_CASE("Ed25519 signatures are those of RFC 8032") {
  const PrivateKey key = PrivateKey::from_pem(kPrivatePem, "test");
  CHECK(to_hex(key.public_key().spki()).substr(24) ==
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  CHECK(to_hex(key.sign({})) ==
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe"
        "24655141438e7a100b");
}

TEST_CASE("keys round-trip through PEM") {
  const PrivateKey key = PrivateKey::generate();
  CHECK(PrivateKey::from_pem(key.to_pem(), "x").public_key().spki() == key.public_key().spki());
  CHECK(PublicKey::from_pem(key.public_pem(), "x").fingerprint() == key.public_key().fingerprint());
  CHECK_REFUSED(PrivateKey::from_pem("not a key", "the file"), Usage, "the file");
  CHECK_REFUSED(PublicKey::from_spki(as_bytes("xx"), "the seal"), Format, "the seal");
}

TEST_CASE("a key of another algorithm cannot be checked, which is not the same as bad") {
  const detail::KeyHandle rsa(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(rsa.get(), &der);
  const Bytes spki(reinterpret_cast<std::byte*>(der), reinterpret_cast<std::byte*>(der) + size);
  OPENSSL_free(der);
  CHECK_REFUSED(PublicKey::from_spki(spki, "the seal"), CannotCheck, "Ed25519");
}

TEST_CASE("what is signed is DSSE's pre-authentication encoding") {
  CHECK(as_text(pre_authentication_encoding("http://example.com/HelloWorld", "hello world")) ==
        "DSSEv1 29 http://example.com/HelloWorld 11 hello world");
}

TEST_CASE("a seal by a pinned key passes and names it") {
  const PrivateKey key = PrivateKey::generate();
  const Seal seal = parse_seal(write_seal(sealed(key)), "s");
  CHECK(seal.payload == "{\"a\":1}");
  CHECK(check_seal(seal, trust(key), "s").signer == key.public_key().fingerprint());
}

TEST_CASE("a seal by another key, by nobody, or with nothing pinned is refused") {
  const PrivateKey key = PrivateKey::generate(), other = PrivateKey::generate();
  CHECK_REFUSED(check_seal(sealed(other), trust(key), "the seal"), Signature, "no key that this site trusts");
  CHECK_REFUSED(check_seal(sealed(other), trust(key), "the seal"), Signature, other.public_key().fingerprint().hex());
  CHECK_REFUSED(check_seal(sealed(key), {}, "the seal"), Signature, "none is pinned");
  CHECK_REFUSED(check_seal(Seal{.payload = "{}"}, trust(key), "the seal"), Signature, "no signature at all");
}

TEST_CASE("a trusted key's name on somebody else's signature is refused") {
  const PrivateKey key = PrivateKey::generate(), other = PrivateKey::generate();
  Seal seal = sealed(other);
  seal.signatures[0].spki = key.public_key().spki();
  CHECK_REFUSED(check_seal(seal, trust(key), "s"), Signature, "does not hold");
}

TEST_CASE("a good signature does not excuse a bad one beside it") {
  const PrivateKey key = PrivateKey::generate(), other = PrivateKey::generate();
  Seal seal = sealed(key);
  add_signature(seal, other);
  seal.signatures[1].bytes[5] ^= std::byte{1};
  CHECK_REFUSED(check_seal(seal, trust(key), "s"), Signature, "does not hold");
}

TEST_CASE("a signature for another payload type does not count") {
  const PrivateKey key = PrivateKey::generate();
  Seal seal{.payload_type = "application/vnd.sealift.receipt.v1+json", .payload = "{}"};
  add_signature(seal, key);
  CHECK_REFUSED(check_seal(seal, trust(key), "s"), CannotCheck, "something else");
  seal.payload_type = kBundlePayloadType;
  CHECK_REFUSED(check_seal(seal, trust(key), "s"), Signature, "does not hold");
}

TEST_CASE("every flipped bit of a seal is refused") {
  const PrivateKey key = PrivateKey::generate();
  const std::string good = write_seal(sealed(key));
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    CAPTURE(bit);
    CHECK_THROWS_AS(check_seal(parse_seal(bad, "s"), trust(key), "s"), Error);
  }
}

TEST_CASE("a seal has one spelling") {
  const PrivateKey key = PrivateKey::generate();
  const std::string good = write_seal(sealed(key));
  CHECK_REFUSED(parse_seal(good + "\n", "s"), Format, "spelled");
  CHECK_REFUSED(parse_seal(good.substr(0, good.size() - 1), "s"), Format, "spelled");
  CHECK_REFUSED(parse_seal(" " + good, "s"), Format, "spelled");
}

TEST_CASE("fingerprints are read as people copy them") {
  const Digest digest = sha256({});
  std::string spaced, upper = digest.hex();
  for (std::size_t i = 0; i < 64; i += 4) spaced += (i == 0 ? "" : " ") + digest.hex().substr(i, 4);
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  CHECK(parse_fingerprint("sha256:" + digest.hex()) == digest);
  CHECK(parse_fingerprint(digest.hex() + "\n") == digest);
  CHECK(parse_fingerprint(spaced) == digest);
  CHECK(parse_fingerprint(upper) == digest);
  CHECK_REFUSED(parse_fingerprint("sha256:1234"), Usage, "1234");
  CHECK_REFUSED(parse_fingerprint(""), Usage, "fingerprint");
}
