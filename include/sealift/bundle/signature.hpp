// SPDX-License-Identifier: Apache-2.0
// Ed25519 keys and signatures: who says so. A key's identity is the SHA-256 of its SubjectPublicKeyInfo (SPKI) in DER.
// The signature primitive is OpenSSL's; what a signature is over is `seal`'s business.
#pragma once

#include <string>
#include <string_view>

#include "sealift/bundle/bytes.hpp"
#include "sealift/bundle/digest.hpp"
#include "sealift/bundle/openssl.hpp"

namespace sealift::bundle {

class PublicKey {
 public:
  // DER, as it stands in a seal. Throws Format when it is no key, CannotCheck when it is one of another algorithm.
  static PublicKey from_spki(ByteView der, std::string_view where) {
    detail::start_openssl();
    const auto* cursor = reinterpret_cast<const unsigned char*>(der.data());
    const auto* end = cursor + der.size();
    detail::KeyHandle key(der.size() > 4096 ? nullptr : d2i_PUBKEY(nullptr, &cursor, static_cast<long>(der.size())));
    if (!key || cursor != end)
      throw Error(ErrorCode::Format, {.what = "a public key does not parse",
                                      .where = std::string(where),
                                      .expected = "one SubjectPublicKeyInfo in DER",
                                      .got = detail::openssl_reason()});
    return PublicKey(std::move(key), where);
  }

  // PEM, as `sealift-pack keygen` and `openssl pkey -pubout` write it.
  static PublicKey from_pem(std::string_view pem, std::string_view where) {
    detail::start_openssl();
    const detail::BioHandle bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    detail::KeyHandle key(PEM_read_bio_PUBKEY(bio.get(), nullptr, nullptr, nullptr));
    if (!key)
      throw Error(
          ErrorCode::Format,
          {.what = "this is not a public key in PEM", .where = std::string(where), .got = detail::openssl_reason()});
    return PublicKey(std::move(key), where);
  }

  const Bytes& spki() const { return spki_; }
  const Digest& fingerprint() const { return fingerprint_; }

  bool accepts(ByteView message, ByteView signature) const {
    const detail::MdContext context(EVP_MD_CTX_new());
    const bool good =
        context && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1 &&
        EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()), signature.size(),
                         reinterpret_cast<const unsigned char*>(message.data()), message.size()) == 1;
    ERR_clear_error();
    return good;
  }

 private:
  friend class PrivateKey;

  PublicKey(detail::KeyHandle key, std::string_view where) : key_(std::move(key)) {
    if (EVP_PKEY_get_base_id(key_.get()) != EVP_PKEY_ED25519)
      throw Error(ErrorCode::CannotCheck, {.what = "a key is of an algorithm that this version does not know",
                                           .where = std::string(where),
                                           .expected = "Ed25519",
                                           .got = std::string(OBJ_nid2sn(EVP_PKEY_get_base_id(key_.get()))),
                                           .next = "use a newer sealift, or a bundle signed with Ed25519"});
    unsigned char* der = nullptr;
    const int size = i2d_PUBKEY(key_.get(), &der);
    if (size <= 0)
      throw Error(ErrorCode::CannotCheck, {.what = "a public key cannot be written", .got = detail::openssl_reason()});
    const auto* begin = reinterpret_cast<const std::byte*>(der);
    spki_.assign(begin, begin + size);
    OPENSSL_free(der);
    fingerprint_ = sha256(spki_);
  }

  detail::KeyHandle key_;
  Bytes spki_;
  Digest fingerprint_;
};

class PrivateKey {
 public:
  static PrivateKey generate() {
    detail::start_openssl();
    detail::KeyHandle key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
    if (!key)
      throw Error(ErrorCode::CannotCheck, {.what = "an Ed25519 key cannot be made", .got = detail::openssl_reason()});
    return PrivateKey(std::move(key));
  }

  // PKCS#8 PEM without a passphrase.
  static PrivateKey from_pem(std::string_view pem, std::string_view where) {
    detail::start_openssl();
    const detail::BioHandle bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    detail::KeyHandle key(PEM_read_bio_PrivateKey(bio.get(), nullptr, refuse_passphrase, nullptr));
    if (!key || EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_ED25519)
      throw Error(ErrorCode::Usage, {.what = "this is not an Ed25519 private key in unencrypted PEM",
                                     .where = std::string(where),
                                     .got = detail::openssl_reason(),
                                     .next = "make one with: sealift-pack keygen"});
    return PrivateKey(std::move(key));
  }

  std::string to_pem() const {
    const detail::BioHandle bio(BIO_new(BIO_s_mem()));
    PEM_write_bio_PKCS8PrivateKey(bio.get(), key_.get(), nullptr, nullptr, 0, nullptr, nullptr);
    return text_of(bio.get());
  }
  std::string public_pem() const {
    const detail::BioHandle bio(BIO_new(BIO_s_mem()));
    PEM_write_bio_PUBKEY(bio.get(), key_.get());
    return text_of(bio.get());
  }

  PublicKey public_key() const {
    EVP_PKEY_up_ref(key_.get());
    return PublicKey(detail::KeyHandle(key_.get()), "private key");
  }

  // 64 bytes; the same key and message give the same signature (RFC 8032).
  Bytes sign(ByteView message) const {
    const detail::MdContext context(EVP_MD_CTX_new());
    Bytes signature(64);
    std::size_t size = signature.size();
    if (!context || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) != 1 ||
        EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                       reinterpret_cast<const unsigned char*>(message.data()), message.size()) != 1)
      throw Error(ErrorCode::CannotCheck, {.what = "signing failed", .got = detail::openssl_reason()});
    signature.resize(size);
    return signature;
  }

 private:
  explicit PrivateKey(detail::KeyHandle key) : key_(std::move(key)) {}

  static int refuse_passphrase(char*, int, int, void*) { return -1; }
  static std::string text_of(BIO* bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    return {data, static_cast<std::size_t>(size)};
  }

  detail::KeyHandle key_;
};

}  // namespace sealift::bundle
