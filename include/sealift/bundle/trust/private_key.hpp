// SPDX-License-Identifier: Apache-2.0
// A private key: made, kept as PKCS#8 PEM (with a passphrase if there is one), and signing. Only the connected side
// and tests have any; what a signature is over is `envelope`'s business.
#pragma once

#include <string>
#include <string_view>

#include "sealift/bundle/trust/public_key.hpp"

namespace sealift::bundle {

class PrivateKey {
 public:
  static PrivateKey generate(Algorithm algorithm = Algorithm::Ed25519) {
    detail::start_openssl();
    const AlgorithmFacts& facts = facts_of(algorithm);
    detail::KeyHandle key(facts.group != nullptr ? EVP_PKEY_Q_keygen(nullptr, nullptr, facts.key_type, facts.group)
                                                 : EVP_PKEY_Q_keygen(nullptr, nullptr, facts.key_type));
    if (!key)
      throw Error(ErrorCode::CannotCheck, {.what = "a key cannot be made: " + name_of(algorithm),
                                           .got = detail::openssl_reason(),
                                           .next = "this program's crypto library does not have it"});
    return PrivateKey(std::move(key), "a new key");
  }

  // PKCS#8 PEM; `passphrase` is for an encrypted one. Throws Usage saying what the text is instead.
  static PrivateKey from_pem(std::string_view pem, std::string_view where, const std::string& passphrase = {}) {
    detail::start_openssl();
    const auto refuse = [&](std::string got, std::string next = {}) {
      ERR_clear_error();
      throw Error(ErrorCode::Usage, {.what = "this is not a private key that can be used",
                                     .where = std::string(where),
                                     .expected = "a PKCS#8 PEM: " + known_algorithms(),
                                     .got = std::move(got),
                                     .next = next.empty() ? "make one with: sealift-pack keygen" : std::move(next)});
    };
    const bool encrypted = pem.find("-----BEGIN ENCRYPTED PRIVATE KEY-----") != pem.npos;
    if (pem.find("-----BEGIN PUBLIC KEY-----") != pem.npos) refuse("a public key", "name the private one (….key)");
    if (pem.starts_with('\x30')) refuse("DER, not PEM", "convert it with: openssl pkcs8 -topk8 -nocrypt -inform DER");
    if (!encrypted && pem.find("-----BEGIN PRIVATE KEY-----") == pem.npos)
      refuse("no such PEM", "convert it with: openssl pkcs8 -topk8");
    if (encrypted && passphrase.empty())
      refuse("a key with a passphrase, and none was given", "use --passphrase-file FILE, or SEALIFT_PASSPHRASE");
    const detail::BioHandle bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    detail::KeyHandle key(
        PEM_read_bio_PrivateKey(bio.get(), nullptr, give_passphrase, const_cast<std::string*>(&passphrase)));
    if (!key && encrypted) refuse("a key that this passphrase does not open", "give the passphrase it was made with");
    if (!key) refuse(detail::openssl_reason());
    return PrivateKey(std::move(key), where);
  }

  // Encrypted with AES-256 when there is a passphrase.
  std::string pem(const std::string& passphrase = {}) const {
    constexpr int kIterations = 600'000;  // of PBKDF2: a guess at the passphrase costs a good part of a second
    const detail::BioHandle bio(BIO_new(BIO_s_mem()));
    const detail::Pkcs8Handle plain(EVP_PKEY2PKCS8(key_.get()));
    if (passphrase.empty()) {
      PEM_write_bio_PKCS8_PRIV_KEY_INFO(bio.get(), plain.get());
    } else {
      const detail::X509SignatureHandle sealed(PKCS8_encrypt(-1, EVP_aes_256_cbc(), passphrase.data(),
                                                             static_cast<int>(passphrase.size()), nullptr, 0,
                                                             kIterations, plain.get()));
      if (!sealed) throw Error(ErrorCode::CannotCheck, {.what = "a key cannot be encrypted"});
      PEM_write_bio_PKCS8(bio.get(), sealed.get());
    }
    return detail::text_of(bio.get());
  }

  const PublicKey& public_key() const { return public_; }

  // Ed25519 gives the same signature each time (RFC 8032); ECDSA and SM2 another one each time.
  Bytes sign(ByteView message) const {
    const AlgorithmFacts& facts = facts_of(public_.algorithm());
    const detail::MdContext context(EVP_MD_CTX_new());
    EVP_PKEY_CTX* inner = nullptr;
    Bytes signature(256);
    std::size_t size = signature.size();
    if (!context ||
        EVP_DigestSignInit_ex(context.get(), &inner, facts.digest, nullptr, nullptr, key_.get(), nullptr) != 1 ||
        !detail::set_identity(inner, public_.algorithm()) ||
        EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                       detail::data_of(message), message.size()) != 1)
      throw Error(ErrorCode::CannotCheck, {.what = "signing failed", .got = detail::openssl_reason()});
    signature.resize(size);
    return signature;
  }

 private:
  PrivateKey(detail::KeyHandle key, std::string_view where) : key_(std::move(key)), public_(public_of(*key_, where)) {}

  static PublicKey public_of(EVP_PKEY& key, std::string_view where) {
    unsigned char* der = nullptr;
    const int size = i2d_PUBKEY(&key, &der);
    return PublicKey::from_spki(detail::take_der(der, size), where);
  }
  static int give_passphrase(char* out, int size, int, void* given) {
    const auto& passphrase = *static_cast<const std::string*>(given);
    if (passphrase.empty() || passphrase.size() > static_cast<std::size_t>(size)) return -1;
    passphrase.copy(out, passphrase.size());
    return static_cast<int>(passphrase.size());
  }

  detail::KeyHandle key_;
  PublicKey public_;
};

}  // namespace sealift::bundle
