// SPDX-License-Identifier: Apache-2.0
// SHA-256 as a value and as a stream: the identity of everything in a bundle.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "sealift/bundle/bytes.hpp"
#include "sealift/bundle/openssl.hpp"

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

// SHA-256 over bytes that arrive in pieces.
class Hasher {
 public:
  Hasher() : context_(EVP_MD_CTX_new()) {
    detail::start_openssl();
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
    if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) fail();
  }
  [[noreturn]] static void fail() {
    throw Error(ErrorCode::CannotCheck, {.what = "SHA-256 is not available", .got = detail::openssl_reason()});
  }

  detail::MdContext context_;
};

inline Digest sha256(ByteView bytes) {
  Hasher hasher;
  hasher.update(bytes);
  return hasher.finish();
}

}  // namespace sealift::bundle
