// SPDX-License-Identifier: Apache-2.0
// Keys and signatures: every algorithm signs and checks, one spelling of each is accepted, odd keys are refused by
// name, and what cannot be checked is not called tampered with.
#include "sealift/bundle/trust/private_key.hpp"

#include <cstring>

#include "bundle/core/openssl.hpp"
#include "bundle/trust/openssl_keys.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift::bundle;

namespace {

const char kPrivatePem[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
    "-----END PRIVATE KEY-----\n";  // RFC 8032, section 7.1, TEST 1

constexpr std::string_view kText = "what is signed";
ByteView message() {
  return as_bytes(kText);
}

Bytes spki_of(EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  return detail::take_der(der, size);
}
Bytes bytes_of_hex(const std::string& hex) {
  return from_hex(hex).value();
}

// DER of two integers given as hexadecimal, with what DER's own rules ask for.
Bytes ecdsa_der(const std::string& r, const std::string& s) {
  const auto integer = [](std::string hex) {
    if (hex[0] >= '8') hex.insert(0, "00");
    const Bytes body = bytes_of_hex(hex);
    return "02" + to_hex(Bytes{static_cast<std::byte>(body.size())}) + hex;
  };
  const std::string both = integer(r) + integer(s);
  return bytes_of_hex("30" + to_hex(Bytes{static_cast<std::byte>(both.size() / 2)}) + both);
}

// An SM2 signature made as other programs make it: with another identity, or with none.
Bytes sm2_signature(const PrivateKey& key, const char* identity) {
  const std::string pem = key.pem();
  const BioHandle bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const KeyHandle handle(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  const MdContext context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* inner = nullptr;
  REQUIRE(EVP_DigestSignInit_ex(context.get(), &inner, "SM3", nullptr, nullptr, handle.get(), nullptr) == 1);
  if (identity != nullptr) REQUIRE(EVP_PKEY_CTX_set1_id(inner, identity, std::strlen(identity)) == 1);
  Bytes signature(256);
  std::size_t size = signature.size();
  REQUIRE(EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                         detail::data_of(message()), message().size()) == 1);
  signature.resize(size);
  return signature;
}

// The raw primitive over somebody's own 32 bytes, such as a SHA-256.
Bytes sm2_signature_of_digest(const PrivateKey& key, const Digest& digest) {
  const std::string pem = key.pem();
  const BioHandle bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const KeyHandle handle(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  const KeyContext context(EVP_PKEY_CTX_new_from_pkey(nullptr, handle.get(), nullptr));
  REQUIRE(EVP_PKEY_sign_init(context.get()) == 1);
  Bytes signature(256);
  std::size_t size = signature.size();
  REQUIRE(EVP_PKEY_sign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                        detail::data_of(digest.bytes), digest.bytes.size()) == 1);
  signature.resize(size);
  return signature;
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

TEST_CASE("every algorithm signs, checks, survives PEM, and is known by the SHA-256 of its SPKI") {
  for (const AlgorithmFacts& facts : kAlgorithms) {
    CAPTURE(std::string(facts.name));
    const PrivateKey key = PrivateKey::generate(facts.algorithm);
    const PublicKey half = PublicKey::from_pem(key.public_key().pem(), "x");
    CHECK(half.algorithm() == facts.algorithm);
    CHECK(half.id() == sha256(half.spki()));
    CHECK(PublicKey::from_spki(half.spki(), "x").id() == key.public_key().id());
    Bytes signature = PrivateKey::from_pem(key.pem(), "x").sign(message());
    CHECK(half.check(message(), signature) == Verdict::Holds);
    CHECK(half.check(as_bytes("something else"), signature) == Verdict::Broken);
    CHECK(PrivateKey::generate(facts.algorithm).public_key().check(message(), signature) == Verdict::Broken);
    for (std::size_t bit = 0; bit < signature.size() * 8; ++bit) {
      signature[bit / 8] ^= std::byte{1} << bit % 8;
      CHECK(half.check(message(), signature) == Verdict::Broken);
      signature[bit / 8] ^= std::byte{1} << bit % 8;
    }
  }
  CHECK(find_algorithm("sm2") == &facts_of(Algorithm::Sm2));
  CHECK(find_algorithm("rsa") == nullptr);
  CHECK(known_algorithms() == "ed25519, ecdsa-p256, ecdsa-p384 or sm2");
}

TEST_CASE("a private key can have a passphrase, and a wrong or missing one is said to be that") {
  const PrivateKey key = PrivateKey::generate(Algorithm::Sm2);
  const std::string pem = key.pem("correct horse");
  CHECK(pem.starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----"));
  CHECK(PrivateKey::from_pem(pem, "k", "correct horse").public_key().id() == key.public_key().id());
  CHECK_REFUSED(PrivateKey::from_pem(pem, "k", "wrong"), Usage, "this passphrase does not open");
  CHECK_REFUSED(PrivateKey::from_pem(pem, "k"), Usage, "none was given");
}

TEST_CASE("a key file that is something else is said to be that") {
  const PrivateKey key = PrivateKey::generate();
  const std::string der(as_text(key.public_key().spki()));
  CHECK_REFUSED(PublicKey::from_pem(key.pem(), "the file"), Usage, "a private key");
  CHECK_REFUSED(PublicKey::from_pem(der, "the file"), Usage, "DER");
  CHECK_REFUSED(PublicKey::from_pem("not a key", "the file"), Usage, "no PEM");
  CHECK_REFUSED(PublicKey::from_pem("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "f"), Usage,
                "CERTIFICATE");
  CHECK_REFUSED(PrivateKey::from_pem(key.public_key().pem(), "the file"), Usage, "a public key");
  CHECK_REFUSED(PrivateKey::from_pem(der, "the file"), Usage, "DER");
  CHECK_REFUSED(PrivateKey::from_pem("not a key", "the file"), Usage, "the file");
}

TEST_CASE("weak and foreign keys are named and cannot be checked, which is not the same as bad") {
  const KeyHandle rsa(EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", std::size_t{1024}));
  const KeyHandle p192(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-192"));
  const KeyHandle p521(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-521"));
  CHECK_REFUSED(PublicKey::from_spki(spki_of(rsa.get()), "the seal"), CannotCheck, "rsaEncryption");
  CHECK_REFUSED(PublicKey::from_spki(spki_of(p192.get()), "the seal"), CannotCheck, "prime192v1");
  CHECK_REFUSED(PublicKey::from_spki(spki_of(p521.get()), "the seal"), CannotCheck, "secp521r1");
  for (EVP_PKEY* key : {rsa.get(), p192.get(), p521.get()}) CHECK_FALSE(PublicKey::known(spki_of(key), "x"));
}

TEST_CASE("a key in any but its one spelling, or off its curve, is refused") {
  CHECK_REFUSED(PublicKey::known(as_bytes("xx"), "the seal"), Format, "the seal");
  CHECK_REFUSED(PublicKey::known(Bytes(5000), "the seal"), Format, "too long");
  for (const Algorithm algorithm : {Algorithm::EcdsaP256, Algorithm::EcdsaP384, Algorithm::Sm2}) {
    const PrivateKey key = PrivateKey::generate(algorithm);
    Bytes spki = key.public_key().spki();
    spki.back() ^= std::byte{1};
    CHECK_REFUSED(PublicKey::known(spki, "k"), Format, "not a point of its curve");
    spki.back() ^= std::byte{1};
    spki.push_back(std::byte{0});
    CHECK_REFUSED(PublicKey::known(spki, "k"), Format, "does not parse");
  }
  const KeyHandle odd(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  EVP_PKEY_set_utf8_string_param(odd.get(), "encoding", "explicit");
  CHECK_REFUSED(PublicKey::known(spki_of(odd.get()), "k"), Format, "explicit parameters");
  EVP_PKEY_set_utf8_string_param(odd.get(), "encoding", "named_curve");
  EVP_PKEY_set_utf8_string_param(odd.get(), "point-format", "compressed");
  CHECK_REFUSED(PublicKey::known(spki_of(odd.get()), "k"), Format, "not spelled");
}

TEST_CASE("Ed25519 keys of small order, for which anybody can sign, and second spellings are refused") {
  const std::string prefix(facts_of(Algorithm::Ed25519).spki_prefix), f(60, 'f'), z(60, '0');
  for (const std::string& point : {"00" + z + "00", "01" + z + "00", "01" + z + "80", "ec" + f + "7f", "ec" + f + "ff",
                                   "ed" + f + "7f", "ee" + f + "7f", "ff" + f + "7f", "ff" + f + "ff",
                                   std::string("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
                                   std::string("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa")}) {
    CAPTURE(point);
    CHECK_REFUSED(PublicKey::known(bytes_of_hex(prefix + point), "k"), Format, "key");
  }
  CHECK_REFUSED(PublicKey::known(bytes_of_hex("302b300506032b6570032200" + std::string(66, '1')), "k"), Format,
                "Ed25519");
}

TEST_CASE("an Ed25519 signature has 64 bytes and S below the group's order") {
  const PrivateKey key = PrivateKey::from_pem(kPrivatePem, "test");
  Bytes signature = key.sign(message());
  Bytes shorter(signature.begin(), signature.end() - 1), longer = signature;
  longer.push_back(std::byte{0});
  CHECK(key.public_key().check(message(), shorter) == Verdict::Broken);
  CHECK(key.public_key().check(message(), longer) == Verdict::Broken);
  CHECK(key.public_key().check(message(), {}) == Verdict::Broken);
  // S + L is the same number to a careless reader. L in little-endian bytes:
  const Bytes order = bytes_of_hex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
  unsigned carry = 0;
  for (std::size_t i = 0; i < 32; ++i) {
    carry += std::to_integer<unsigned>(signature[32 + i]) + std::to_integer<unsigned>(order[i]);
    signature[32 + i] = static_cast<std::byte>(carry & 255);
    carry >>= 8;
  }
  CHECK(key.public_key().check(message(), signature) == Verdict::Broken);
}

TEST_CASE("ECDSA and SM2 signatures have one DER spelling, and r and s are in [1, n-1]") {
  for (const Algorithm algorithm : {Algorithm::EcdsaP256, Algorithm::EcdsaP384, Algorithm::Sm2}) {
    const AlgorithmFacts& facts = facts_of(algorithm);
    const std::string n(facts.order), one(2, '0');
    const auto canonical = [&](const Bytes& der) { return detail::is_canonical_ecdsa_signature(der, facts); };
    CHECK(canonical(ecdsa_der("01", "01")));
    CHECK_FALSE(canonical(ecdsa_der("00", "01")));
    CHECK_FALSE(canonical(ecdsa_der("01", "00")));
    CHECK_FALSE(canonical(ecdsa_der(n, "01")));
    CHECK_FALSE(canonical(ecdsa_der("01", n)));
    CHECK_FALSE(canonical(ecdsa_der("01", "ff" + n)));
    CHECK_FALSE(canonical(bytes_of_hex("30060201010201ff")));    // negative
    CHECK_FALSE(canonical(bytes_of_hex("300702020001020101")));  // a zero too much
    CHECK_FALSE(
        canonical(bytes_of_hex("3081060201010201"
                               "01")));                          // a long form of a short length
    CHECK_FALSE(canonical(bytes_of_hex("300602010102010100")));  // something behind it
    CHECK_FALSE(canonical(bytes_of_hex("3003020101")));
    CHECK_FALSE(canonical({}));
    CHECK_FALSE(canonical(Bytes(300)));
    const PrivateKey key = PrivateKey::generate(algorithm);
    Bytes signature = key.sign(message());
    signature.push_back(std::byte{0});
    CHECK(key.public_key().check(message(), signature) == Verdict::Broken);
  }
}

TEST_CASE("SM2 counts with its identity and SM3 only: no identity, another one or SHA-256 do not hold") {
  const PrivateKey key = PrivateKey::generate(Algorithm::Sm2);
  const PublicKey& half = key.public_key();
  CHECK(half.check(message(), sm2_signature(key, "1234567812345678")) == Verdict::Holds);
  CHECK(half.check(message(), sm2_signature(key, nullptr)) == Verdict::Broken);
  CHECK(half.check(message(), sm2_signature(key, "")) == Verdict::Broken);
  CHECK(half.check(message(), sm2_signature(key, "1234567812345679")) == Verdict::Broken);
  CHECK(half.check(message(), sm2_signature_of_digest(key, sha256(message()))) == Verdict::Broken);
}

TEST_CASE("an implementation that is not there is cannot-check: with fips=yes nothing else is used") {
  for (const Algorithm algorithm : {Algorithm::EcdsaP384, Algorithm::Ed25519, Algorithm::Sm2}) {
    const PrivateKey key = PrivateKey::generate(algorithm);
    const Bytes signature = key.sign(message());
    CHECK(key.public_key().check(message(), signature, "fips=yes") == Verdict::CannotCheck);
    CHECK(key.public_key().check(message(), signature) == Verdict::Holds);
  }
}
