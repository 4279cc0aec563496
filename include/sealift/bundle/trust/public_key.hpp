// SPDX-License-Identifier: Apache-2.0
// A public key and what it says about a signature: it holds, it is broken, or this program cannot tell.
// A key's identity is the SHA-256 of its SubjectPublicKeyInfo (SPKI) in DER. The primitives are OpenSSL's; here is only
// which encodings are accepted: one for a key, one for a signature.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sealift/bundle/trust/algorithm.hpp"
#include "sealift/bundle/core/bytes.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "bundle/core/openssl.hpp"

namespace sealift::bundle {

inline constexpr std::size_t kMaxSpki = 4096;

enum class Verdict { Holds, Broken, CannotCheck };

namespace detail {

inline const unsigned char* data_of(ByteView view) {
  return reinterpret_cast<const unsigned char*>(view.data());
}

// What OpenSSL wrote into a buffer of its own.
inline Bytes take_der(unsigned char* der, int size) {
  if (size <= 0) throw Error(ErrorCode::CannotCheck, {.what = "a key cannot be written", .got = openssl_reason()});
  const auto* begin = reinterpret_cast<const std::byte*>(der);
  Bytes bytes(begin, begin + size);
  OPENSSL_free(der);
  return bytes;
}

[[noreturn]] inline void refuse_key(std::string what, std::string_view where, std::string got = {}) {
  throw Error(ErrorCode::Format,
              {.what = std::move(what),
               .where = std::string(where),
               .expected = "a SubjectPublicKeyInfo in DER: " + known_algorithms() + ", named curve, uncompressed point",
               .got = std::move(got)});
}

// The name of the algorithm, and of its curve, of a key that matches no row of our table. Throws Format when it claims
// to be one of ours in another spelling, or is no key at all.
inline std::string name_of_other_key(ByteView der, std::string_view where) {
  const unsigned char* cursor = data_of(der);
  const X509PublicKeyHandle key(d2i_X509_PUBKEY(nullptr, &cursor, static_cast<long>(der.size())));
  const bool whole = key && cursor == data_of(der) + der.size();
  ERR_clear_error();
  if (!whole) refuse_key("a public key does not parse", where);
  ASN1_OBJECT* object = nullptr;
  X509_ALGOR* algorithm = nullptr;
  X509_PUBKEY_get0_param(&object, nullptr, nullptr, &algorithm, key.get());
  const auto name = [](const ASN1_OBJECT* id) {
    char text[80];
    return OBJ_obj2txt(text, sizeof text, id, 0) > 0 ? std::string(text) : "an unnamed algorithm";
  };
  const int kind = OBJ_obj2nid(object);
  if (kind == NID_ED25519) refuse_key("an Ed25519 key has the wrong length or spelling", where);
  if (kind != NID_X9_62_id_ecPublicKey) return name(object);
  int type = 0;
  const void* parameter = nullptr;
  X509_ALGOR_get0(nullptr, &type, &parameter, algorithm);
  if (type != V_ASN1_OBJECT) refuse_key("an elliptic-curve key spells out its own curve", where, "explicit parameters");
  const auto* curve = static_cast<const ASN1_OBJECT*>(parameter);
  const int known[] = {NID_X9_62_prime256v1, NID_secp384r1, NID_sm2};
  for (const int id : known)
    if (OBJ_obj2nid(curve) == id) refuse_key("a public key is not spelled as keys are", where, "curve " + name(curve));
  return "curve " + name(curve);
}

// Ed25519 points for which anybody can make signatures (order 1, 2, 4, 8), and second spellings of a point: y is not
// below 2^255 - 19. (RFC 8032, section 5.1.3; the list is that of all y of small order.)
inline bool is_bad_ed25519_point(ByteView point) {
  std::string y = to_hex(point);
  const int top = std::to_integer<int>(point.back() & std::byte{0x7f});
  y.replace(62, 2, to_hex(Bytes{static_cast<std::byte>(top)}));
  const std::string ones(60, 'f'), zeros(60, '0');
  for (const std::string& bad : {"00" + zeros + "00", "01" + zeros + "00", "ec" + ones + "7f",
                                 std::string("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
                                 std::string("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")})
    if (y == bad) return true;
  return y.substr(2) == ones + "7f" && std::to_integer<int>(point.front()) >= 0xed;
}

// DER of two integers in [1, n-1], in the one spelling that DER has; nothing behind it.
inline bool is_canonical_ecdsa_signature(ByteView signature, const AlgorithmFacts& facts) {
  const unsigned char* cursor = data_of(signature);
  const EcdsaSignature parsed(
      signature.size() > 256 ? nullptr : d2i_ECDSA_SIG(nullptr, &cursor, static_cast<long>(signature.size())));
  ERR_clear_error();
  if (!parsed || cursor != data_of(signature) + signature.size()) return false;
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(parsed.get(), &der);
  const Bytes again = take_der(der, size);
  if (!std::equal(again.begin(), again.end(), signature.begin(), signature.end())) return false;
  BIGNUM* number = nullptr;
  BN_hex2bn(&number, std::string(facts.order).c_str());
  const BigNumber order(number);
  for (const BIGNUM* part : {ECDSA_SIG_get0_r(parsed.get()), ECDSA_SIG_get0_s(parsed.get())})
    if (BN_is_zero(part) || BN_is_negative(part) || BN_cmp(part, order.get()) >= 0) return false;
  return true;
}

// SM2 needs its identity said on both sides; the others need nothing.
inline bool set_identity(EVP_PKEY_CTX* context, Algorithm algorithm) {
  return algorithm != Algorithm::Sm2 || EVP_PKEY_CTX_set1_id(context, kSm2Identity.data(), kSm2Identity.size()) == 1;
}

}  // namespace detail

class PublicKey {
 public:
  // Nothing when the key is of a kind that this version does not know or does not take (RSA, other curves). Throws
  // Format when it is no key, or one that is malformed, off its curve or of small order.
  static std::optional<PublicKey> known(ByteView der, std::string_view where) {
    detail::start_openssl();
    if (der.size() > kMaxSpki) detail::refuse_key("a public key is too long", where);
    const std::string hex = to_hex(der);
    for (const AlgorithmFacts& facts : kAlgorithms)
      if (hex.starts_with(facts.spki_prefix) && der.size() == facts.spki_prefix.size() / 2 + facts.point_size)
        return PublicKey(facts.algorithm, der, where);
    detail::name_of_other_key(der, where);
    return std::nullopt;
  }
  // The same, but a key of another kind is CannotCheck.
  static PublicKey from_spki(ByteView der, std::string_view where) {
    std::optional<PublicKey> key = known(der, where);
    if (!key)
      throw Error(ErrorCode::CannotCheck, {.what = "a key is of a kind that this version does not take",
                                           .where = std::string(where),
                                           .expected = known_algorithms(),
                                           .got = detail::name_of_other_key(der, where),
                                           .next = "make a key with: sealift-pack keygen"});
    return *std::move(key);
  }
  // PEM, as `sealift-pack keygen` and `openssl pkey -pubout` write it. Throws Usage saying what it is instead.
  static PublicKey from_pem(std::string_view pem, std::string_view where) {
    detail::start_openssl();
    const auto refuse = [&](std::string got) {
      throw Error(ErrorCode::Usage, {.what = "this is not a public key in PEM",
                                     .where = std::string(where),
                                     .expected = "-----BEGIN PUBLIC KEY-----",
                                     .got = std::move(got)});
    };
    if (pem.find("PRIVATE KEY-----") != pem.npos) refuse("a private key, which should be nowhere but with its owner");
    if (pem.starts_with('\x30')) refuse("DER; convert it with: openssl pkey -pubin -inform DER");
    const detail::BioHandle bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    char* name = nullptr;
    char* header = nullptr;
    unsigned char* data = nullptr;
    long size = 0;
    if (PEM_read_bio(bio.get(), &name, &header, &data, &size) != 1) refuse("no PEM; " + detail::openssl_reason());
    const std::string label = name;
    OPENSSL_free(name);
    OPENSSL_free(header);
    const Bytes der = detail::take_der(data, static_cast<int>(size));
    if (label != "PUBLIC KEY") refuse("-----BEGIN " + label + "-----");
    return from_spki(der, where);
  }

  Algorithm algorithm() const { return algorithm_; }
  const Bytes& spki() const { return spki_; }
  const Digest& id() const { return id_; }
  std::string pem() const {
    const detail::BioHandle bio(BIO_new(BIO_s_mem()));
    PEM_write_bio_PUBKEY(bio.get(), key_.get());
    return detail::text_of(bio.get());
  }

  // `properties` chooses among OpenSSL's implementations ("fips=yes"), null: any. A signature in any but its one
  // spelling is Broken; CannotCheck means that no implementation was found.
  Verdict check(ByteView message, ByteView signature, const char* properties = nullptr) const {
    const AlgorithmFacts& facts = facts_of(algorithm_);
    if (algorithm_ == Algorithm::Ed25519 ? signature.size() != 64
                                         : !detail::is_canonical_ecdsa_signature(signature, facts))
      return Verdict::Broken;
    const detail::MdContext context(EVP_MD_CTX_new());
    EVP_PKEY_CTX* inner = nullptr;
    const bool ready =
        context &&
        EVP_DigestVerifyInit_ex(context.get(), &inner, facts.digest, nullptr, properties, key_.get(), nullptr) == 1 &&
        detail::set_identity(inner, algorithm_);
    const bool good = ready && EVP_DigestVerify(context.get(), detail::data_of(signature), signature.size(),
                                                detail::data_of(message), message.size()) == 1;
    ERR_clear_error();
    return good ? Verdict::Holds : ready ? Verdict::Broken : Verdict::CannotCheck;
  }

 private:
  PublicKey(Algorithm algorithm, ByteView der, std::string_view where)
      : algorithm_(algorithm), spki_(der.begin(), der.end()), id_(sha256(der)) {
    const unsigned char* cursor = detail::data_of(der);
    key_ = detail::KeyHandle(d2i_PUBKEY(nullptr, &cursor, static_cast<long>(der.size())));
    ERR_clear_error();
    if (!key_) detail::refuse_key("a public key is not a point of its curve", where, name_of(algorithm));
    if (algorithm == Algorithm::Ed25519 && detail::is_bad_ed25519_point(der.last(32)))
      detail::refuse_key("an Ed25519 key is a point of small order, or not in its one spelling", where);
  }

  Algorithm algorithm_;
  detail::KeyHandle key_;
  Bytes spki_;
  Digest id_;
};

}  // namespace sealift::bundle
