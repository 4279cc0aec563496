// SPDX-License-Identifier: Apache-2.0
// Digests as values and as streams. SHA-256 is the identity of everything in a bundle; the chunks of its payload may
// be digested with SM3 instead, where a site has to use it. Weaker algorithms have no name here, so no caller can
// ask for one.
#pragma once

#include <array>
#include <compare>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sealift/bundle/core/bytes.hpp"

namespace sealift::bundle {

// 32 bytes; compares byte by byte, prints as 64 lower-case hexadecimal digits.
struct Digest {
  static constexpr std::size_t kSize = 32;
  std::array<std::byte, kSize> bytes{};

  std::string hex() const { return to_hex(bytes); }
  auto operator<=>(const Digest&) const = default;

  // Nothing unless `view` has 32 bytes.
  static std::optional<Digest> from_bytes(ByteView view);
  // The inverse of hex(); every other text is nothing.
  static std::optional<Digest> from_hex(std::string_view text);
};

static_assert(sizeof(Digest) == Digest::kSize);  // a chunk list is read as it stands

enum class DigestAlgorithm {
  Sha256,
  Sm3,  // GB/T 32905-2016; 32 bytes as well
};

// "sha256" or "sm3", as manifests write it.
std::string name_of(DigestAlgorithm algorithm);
// The inverse of name_of; every other name is unknown.
std::optional<DigestAlgorithm> digest_algorithm(std::string_view name);

// The digest of bytes that arrive in pieces; throws CannotCheck when the crypto library lacks the algorithm.
class Hasher {
 public:
  explicit Hasher(DigestAlgorithm algorithm = DigestAlgorithm::Sha256);
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;
  ~Hasher();

  void update(ByteView bytes);
  // The digest of everything since construction or the last finish; the hasher is then as new.
  Digest finish();

 private:
  class Stream;
  std::unique_ptr<Stream> stream_;
};

// The digest of bytes that are all there; throws as Hasher does.
Digest digest_of(ByteView bytes, DigestAlgorithm algorithm);
Digest sha256(ByteView bytes);

}  // namespace sealift::bundle
