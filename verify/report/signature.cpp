// SPDX-License-Identifier: Apache-2.0
// Checks signatures with libcrypto, and writes the commands of openssl that do the same.
// See signature.hpp.
// The ID of SM2 is always set: without it two programs compute different digests of the same bytes.
#include "verify/report/signature.hpp"

#include "verify/report/digests.hpp"
#include "verify/report/folder.hpp"

#include "bundle/core/openssl.hpp"

#include <array>
#include <memory>
#include <stdexcept>

namespace sealift::verify {
namespace {

constexpr std::string_view kSm2Id = "1234567812345678";

struct KindFacts {
  KeyKind kind;
  const char* name;
  const char* type;   ///< libcrypto's name of the key type
  const char* group;  ///< of an EC key
  const char* digest;
  const char* options;  ///< of openssl pkeyutl
};
constexpr std::array<KindFacts, 4> kKinds{{
    {KeyKind::Ed25519, "Ed25519", "ED25519", nullptr, nullptr, ""},
    {KeyKind::EcdsaP384, "ECDSA P-384", "EC", "secp384r1", "SHA384", " -digest sha384"},
    {KeyKind::EcdsaP256, "ECDSA P-256", "EC", "prime256v1", "SHA256", " -digest sha256"},
    {KeyKind::Sm2, "SM2 with SM3", "SM2", nullptr, "SM3", " -digest sm3 -pkeyopt distid:1234567812345678"},
}};

const KindFacts& facts_of_kind(KeyKind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

bool is_kind(const EVP_PKEY* key, const KindFacts& facts) {
  if (EVP_PKEY_is_a(key, facts.type) != 1) return false;
  if (!facts.group) return true;
  char group[64] = {};
  return EVP_PKEY_get_group_name(key, group, sizeof group, nullptr) == 1 && group == std::string(facts.group);
}

std::string der_of(const bundle::KeyHandle& key) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key.get(), &der);
  if (size <= 0) throw std::runtime_error("libcrypto cannot write a public key");
  const std::string bytes(reinterpret_cast<const char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  return bytes;
}

const unsigned char* bytes_of(const std::string& text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

/// `text` as one word of a shell.
std::string quoted(const std::string& text) {
  const auto plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-";
  if (!text.empty() && text.find_first_not_of(plain) == text.npos && text[0] != '-') return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace

SiteKey read_site_key(const std::filesystem::path& file) {
  const auto pem = read_bounded(file, 64 << 10);
  if (pem.find("PRIVATE KEY") != pem.npos) {
    throw std::invalid_argument(file.string() +
                                " holds a private key; give the public one: openssl pkey -in KEY -pubout");
  }
  // sha256_of starts libcrypto without the host's configuration.
  sha256_of({});
  const bundle::BioHandle bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const bundle::KeyHandle key(bio ? PEM_read_bio_PUBKEY(bio.get(), nullptr, nullptr, nullptr) : nullptr);
  ERR_clear_error();
  if (!key) throw std::invalid_argument(file.string() + " holds no public key in PEM");
  for (const auto& facts : kKinds) {
    if (!is_kind(key.get(), facts)) continue;
    const auto spki = der_of(key);
    return {.kind = facts.kind, .spki = spki, .id = sha256_of(spki)};
  }
  throw std::invalid_argument(file.string() + " is no Ed25519, ECDSA P-384, ECDSA P-256 or SM2 key");
}

bool signature_holds(const SiteKey& key, const std::string& message, const std::string& signature) {
  const auto* cursor = bytes_of(key.spki);
  const bundle::KeyHandle handle(d2i_PUBKEY(nullptr, &cursor, static_cast<long>(key.spki.size())));
  const bundle::MdContext context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* inner = nullptr;
  const bool ready = handle && context &&
                     EVP_DigestVerifyInit_ex(context.get(), &inner, facts_of_kind(key.kind).digest, nullptr, nullptr,
                                             handle.get(), nullptr) == 1 &&
                     (key.kind != KeyKind::Sm2 || EVP_PKEY_CTX_set1_id(inner, kSm2Id.data(), kSm2Id.size()) == 1);
  if (!ready) throw std::invalid_argument("this program's libcrypto cannot check " + name_of(key.kind));
  const bool holds =
      EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(), bytes_of(message), message.size()) == 1;
  ERR_clear_error();
  return holds;
}

std::string name_of(KeyKind kind) {
  return facts_of_kind(kind).name;
}

std::vector<std::string> openssl_commands(KeyKind kind, const std::filesystem::path& folder,
                                          const std::string& public_key) {
  const std::string options = facts_of_kind(kind).options;
  const auto list = quoted((folder / kDigestsFile).string()), signature = quoted((folder / kSignatureFile).string());
  return {"openssl pkeyutl -sign -rawin -inkey SITE.key" + options + " -in " + list + " -out " + signature,
          "openssl pkeyutl -verify -rawin -pubin -inkey " + quoted(public_key) + options + " -in " + list +
              " -sigfile " + signature,
          "(cd " + quoted(folder.string()) + " && sha256sum -c " + kDigestsFile + ")"};
}

}  // namespace sealift::verify
