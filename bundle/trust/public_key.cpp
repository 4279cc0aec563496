// SPDX-License-Identifier: Apache-2.0
// Which encodings of keys and signatures are accepted, and the check itself; see public_key.hpp.
#include "sealift/bundle/trust/public_key.hpp"

#include <atomic>
#include <utility>

#include "bundle/trust/openssl_keys.hpp"
#include "sealift/bundle/core/error.hpp"

namespace sealift::bundle {

using namespace detail;  // OpenSSL's handles

namespace {

std::atomic<std::uint64_t> checked{0};

[[noreturn]] void refuse_key(std::string what, std::string_view where, std::string got = {}) {
  throw Error(ErrorCode::Format,
              {.what = std::move(what),
               .where = std::string(where),
               .expected = "a SubjectPublicKeyInfo in DER: " + known_algorithms() + ", named curve, uncompressed point",
               .got = std::move(got)});
}

// The name of the algorithm, and of its curve, of a key that matches no row of our table. Throws Format when it claims
// to be one of ours in another spelling, or is no key at all.
std::string name_of_other_key(ByteView der, std::string_view where) {
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
bool is_bad_ed25519_point(ByteView point) {
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

}  // namespace

std::uint64_t signatures_checked() {
  return checked;
}

struct PublicKey::Handle {
  KeyHandle key;

  explicit Handle(KeyHandle handle) : key(std::move(handle)) {}
};

PublicKey::PublicKey(PublicKey&&) noexcept = default;
PublicKey& PublicKey::operator=(PublicKey&&) noexcept = default;
PublicKey::~PublicKey() = default;

std::optional<PublicKey> PublicKey::known(ByteView der, std::string_view where) {
  start_openssl();
  if (der.size() > kMaxSpki) refuse_key("a public key is too long", where);
  const std::string hex = to_hex(der);
  for (const AlgorithmFacts& facts : kAlgorithms)
    if (hex.starts_with(facts.spki_prefix) && der.size() == facts.spki_prefix.size() / 2 + facts.point_size)
      return PublicKey(facts.algorithm, der, where);
  name_of_other_key(der, where);
  return std::nullopt;
}

PublicKey PublicKey::from_spki(ByteView der, std::string_view where) {
  std::optional<PublicKey> key = known(der, where);
  if (!key)
    throw Error(ErrorCode::CannotCheck, {.what = "a key is of a kind that this version does not take",
                                         .where = std::string(where),
                                         .expected = known_algorithms(),
                                         .got = name_of_other_key(der, where),
                                         .next = "make a key with: sealift-pack keygen"});
  return *std::move(key);
}

PublicKey PublicKey::from_pem(std::string_view pem, std::string_view where) {
  start_openssl();
  const auto refuse = [&](std::string got) {
    throw Error(ErrorCode::Usage, {.what = "this is not a public key in PEM",
                                   .where = std::string(where),
                                   .expected = "-----BEGIN PUBLIC KEY-----",
                                   .got = std::move(got)});
  };
  if (pem.find("PRIVATE KEY-----") != pem.npos) refuse("a private key, which should be nowhere but with its owner");
  if (pem.starts_with('\x30')) refuse("DER; convert it with: openssl pkey -pubin -inform DER");
  const BioHandle bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  char* name = nullptr;
  char* header = nullptr;
  unsigned char* data = nullptr;
  long size = 0;
  if (PEM_read_bio(bio.get(), &name, &header, &data, &size) != 1) refuse("no PEM; " + openssl_reason());
  const std::string label = name;
  OPENSSL_free(name);
  OPENSSL_free(header);
  const Bytes der = take_der(data, static_cast<int>(size));
  if (label != "PUBLIC KEY") refuse("-----BEGIN " + label + "-----");
  return from_spki(der, where);
}

std::string PublicKey::pem() const {
  const BioHandle bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PUBKEY(bio.get(), handle_->key.get());
  return text_of(bio.get());
}

Verdict PublicKey::check(ByteView message, ByteView signature, const char* properties) const {
  ++checked;
  const AlgorithmFacts& facts = facts_of(algorithm_);
  if (algorithm_ == Algorithm::Ed25519 ? signature.size() != 64 : !is_canonical_ecdsa_signature(signature, facts))
    return Verdict::Broken;
  const MdContext context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* inner = nullptr;
  const bool ready = context &&
                     EVP_DigestVerifyInit_ex(context.get(), &inner, facts.digest, nullptr, properties,
                                             handle_->key.get(), nullptr) == 1 &&
                     set_identity(inner, algorithm_);
  const bool good = ready && EVP_DigestVerify(context.get(), data_of(signature), signature.size(), data_of(message),
                                              message.size()) == 1;
  ERR_clear_error();
  return good ? Verdict::Holds : ready ? Verdict::Broken : Verdict::CannotCheck;
}

PublicKey::PublicKey(Algorithm algorithm, ByteView der, std::string_view where)
    : algorithm_(algorithm), spki_(der.begin(), der.end()), id_(sha256(der)) {
  const unsigned char* cursor = data_of(der);
  handle_ = std::make_unique<Handle>(KeyHandle(d2i_PUBKEY(nullptr, &cursor, static_cast<long>(der.size()))));
  ERR_clear_error();
  if (!handle_->key) refuse_key("a public key is not a point of its curve", where, name_of(algorithm));
  if (algorithm == Algorithm::Ed25519 && is_bad_ed25519_point(der.last(32)))
    refuse_key("an Ed25519 key is a point of small order, or not in its one spelling", where);
}

}  // namespace sealift::bundle
