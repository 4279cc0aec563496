// SPDX-License-Identifier: Apache-2.0
// Digests as values and as streams. SHA-256 is the identity of everything in a bundle; the chunks of its payload may
// be digested with SM3 instead, where a site has to use it. Weaker algorithms have no name here, so nothing can ask.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "sealift/bundle/core/bytes.hpp"
#include "bundle/core/openssl.hpp"

namespace sealift::bundle {

// 32 bytes; compares byte by byte, prints as 64 lower-case hexadecimal digits.
struct Digest {
  static constexpr std::size_t kSize = 32;
  std::array<std::byte, kSize> bytes{};

  std::string hex() const { return to_hex(bytes); }
  auto operator<=>(const Digest&) const = default;

  static std::optional<Digest> from_bytes(ByteView view) {
    if (view.size() != kSize) return std::nullopt;
    Digest digest;
    std::copy(view.begin(), view.end(), digest.bytes.begin());
    return digest;
  }
  static std::optional<Digest> from_hex(std::string_view text) {
    const std::optional<Bytes> bytes = bundle::from_hex(text);
    return bytes ? from_bytes(*bytes) : std::nullopt;
  }
};

static_assert(sizeof(Digest) == Digest::kSize);  // a chunk list is read as it stands

enum class DigestAlgorithm {
  Sha256,
  Sm3,  // GB/T 32905-2016; 32 bytes as well
};

inline std::string name_of(DigestAlgorithm algorithm) {
  return algorithm == DigestAlgorithm::Sm3 ? "sm3" : "sha256";
}
// The inverse of name_of; every other name is unknown.
inline std::optional<DigestAlgorithm> digest_algorithm(std::string_view name) {
  for (const DigestAlgorithm algorithm : {DigestAlgorithm::Sha256, DigestAlgorithm::Sm3})
    if (name == name_of(algorithm)) return algorithm;
  return std::nullopt;
}

namespace detail {
// Looked up once: a library built without SM3 has none. Null then. SHA-256 is the FIPS provider's in a process that
// loaded one before; the root's profile is not known here, and the digest is the same.
inline const EVP_MD* digest_method(DigestAlgorithm algorithm) {
  start_openssl();
  static EVP_MD* const kSha256 = EVP_MD_fetch(nullptr, "SHA256", "?fips=yes");
  static EVP_MD* const kSm3 = EVP_MD_fetch(nullptr, "SM3", nullptr);
  return algorithm == DigestAlgorithm::Sm3 ? kSm3 : kSha256;
}
}  // namespace detail

// The digest of bytes that arrive in pieces; throws CannotCheck when the crypto library lacks the algorithm.
class Hasher {
 public:
  explicit Hasher(DigestAlgorithm algorithm = DigestAlgorithm::Sha256)
      : algorithm_(algorithm), context_(EVP_MD_CTX_new()) {
    reset();
  }

  void update(ByteView bytes) {
    if (EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) != 1) fail();
  }

  // The digest of everything since construction or the last finish; the hasher is then as new.
  Digest finish() {
    Digest digest;
    if (EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.bytes.data()), nullptr) != 1) fail();
    reset();
    return digest;
  }

 private:
  void reset() {
    const EVP_MD* method = detail::digest_method(algorithm_);
    if (!context_ || method == nullptr || EVP_DigestInit_ex(context_.get(), method, nullptr) != 1) fail();
  }
  [[noreturn]] void fail() const {
    throw Error(ErrorCode::CannotCheck,
                {.what = "the crypto library cannot compute " + name_of(algorithm_), .got = detail::openssl_reason()});
  }

  DigestAlgorithm algorithm_;
  detail::MdContext context_;
};

inline Digest digest_of(ByteView bytes, DigestAlgorithm algorithm) {
  Hasher hasher(algorithm);
  hasher.update(bytes);
  return hasher.finish();
}
inline Digest sha256(ByteView bytes) {
  return digest_of(bytes, DigestAlgorithm::Sha256);
}

}  // namespace sealift::bundle
