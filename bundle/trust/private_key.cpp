// SPDX-License-Identifier: Apache-2.0
// Makes, reads, writes and uses private keys; see private_key.hpp.
#include "sealift/bundle/trust/private_key.hpp"

#include <utility>

#include "bundle/trust/openssl_keys.hpp"
#include "sealift/bundle/core/error.hpp"

namespace sealift::bundle {

using namespace detail;  // OpenSSL's handles

namespace {

PublicKey public_of(EVP_PKEY& key, std::string_view where) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(&key, &der);
  return PublicKey::from_spki(take_der(der, size), where);
}

int give_passphrase(char* out, int size, int, void* given) {
  const auto& passphrase = *static_cast<const std::string*>(given);
  if (passphrase.empty() || passphrase.size() > static_cast<std::size_t>(size)) return -1;
  passphrase.copy(out, passphrase.size());
  return static_cast<int>(passphrase.size());
}

}  // namespace

struct PrivateKey::Handle {
  KeyHandle key;

  explicit Handle(KeyHandle handle) : key(std::move(handle)) {}
};

PrivateKey::PrivateKey(std::unique_ptr<Handle> handle, std::string_view where)
    : handle_(std::move(handle)), public_(public_of(*handle_->key, where)) {}
PrivateKey::PrivateKey(PrivateKey&&) noexcept = default;
PrivateKey& PrivateKey::operator=(PrivateKey&&) noexcept = default;
PrivateKey::~PrivateKey() = default;

PrivateKey PrivateKey::generate(Algorithm algorithm) {
  start_openssl();
  const AlgorithmFacts& facts = facts_of(algorithm);
  KeyHandle key(facts.group != nullptr ? EVP_PKEY_Q_keygen(nullptr, nullptr, facts.key_type, facts.group)
                                       : EVP_PKEY_Q_keygen(nullptr, nullptr, facts.key_type));
  if (!key)
    throw Error(ErrorCode::CannotCheck, {.what = "a key cannot be made: " + name_of(algorithm),
                                         .got = openssl_reason(),
                                         .next = "this program's crypto library does not have it"});
  return PrivateKey(std::make_unique<Handle>(std::move(key)), "a new key");
}

PrivateKey PrivateKey::from_pem(std::string_view pem, std::string_view where, const std::string& passphrase) {
  start_openssl();
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
  const BioHandle bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  KeyHandle key(PEM_read_bio_PrivateKey(bio.get(), nullptr, give_passphrase, const_cast<std::string*>(&passphrase)));
  if (!key && encrypted) refuse("a key that this passphrase does not open", "give the passphrase it was made with");
  if (!key) refuse(openssl_reason());
  return PrivateKey(std::make_unique<Handle>(std::move(key)), where);
}

std::string PrivateKey::pem(const std::string& passphrase) const {
  constexpr int kIterations = 600'000;  // of PBKDF2: a guess at the passphrase costs a good part of a second
  const BioHandle bio(BIO_new(BIO_s_mem()));
  const Pkcs8Handle plain(EVP_PKEY2PKCS8(handle_->key.get()));
  if (passphrase.empty()) {
    PEM_write_bio_PKCS8_PRIV_KEY_INFO(bio.get(), plain.get());
  } else {
    const X509SignatureHandle sealed(PKCS8_encrypt(-1, EVP_aes_256_cbc(), passphrase.data(),
                                                   static_cast<int>(passphrase.size()), nullptr, 0, kIterations,
                                                   plain.get()));
    if (!sealed) throw Error(ErrorCode::CannotCheck, {.what = "a key cannot be encrypted"});
    PEM_write_bio_PKCS8(bio.get(), sealed.get());
  }
  return text_of(bio.get());
}

Bytes PrivateKey::sign(ByteView message) const {
  const AlgorithmFacts& facts = facts_of(public_.algorithm());
  const MdContext context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* inner = nullptr;
  Bytes signature(256);
  std::size_t size = signature.size();
  if (!context ||
      EVP_DigestSignInit_ex(context.get(), &inner, facts.digest, nullptr, nullptr, handle_->key.get(), nullptr) != 1 ||
      !set_identity(inner, public_.algorithm()) ||
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, data_of(message),
                     message.size()) != 1)
    throw Error(ErrorCode::CannotCheck, {.what = "signing failed", .got = openssl_reason()});
  signature.resize(size);
  return signature;
}

}  // namespace sealift::bundle
