// SPDX-License-Identifier: Apache-2.0
// A public key and what it says about a signature: it holds, it is broken, or this program cannot tell.
// A key's identity is the SHA-256 of its SubjectPublicKeyInfo (SPKI) in DER. The primitives are OpenSSL's; what is
// decided here is which encodings are accepted: one for a key, one for a signature.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sealift/bundle/core/bytes.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/trust/algorithm.hpp"

namespace sealift::bundle {

inline constexpr std::size_t kMaxSpki = 4096;  // bytes

enum class Verdict { Holds, Broken, CannotCheck };

// How many signatures this process has checked: what an unsigned seal may cost is bounded, and held to its bound by
// this count and not by a clock.
std::uint64_t signatures_checked();

class PublicKey {
 public:
  // Nothing when the key is of a kind that this version does not know or does not take (RSA, other curves). Throws
  // Format when it is no key, or one that is malformed, off its curve or of small order.
  static std::optional<PublicKey> known(ByteView der, std::string_view where);
  // The same, but a key of another kind is CannotCheck.
  static PublicKey from_spki(ByteView der, std::string_view where);
  // PEM, as `sealift-pack keygen` and `openssl pkey -pubout` write it. Throws Usage saying what it is instead.
  static PublicKey from_pem(std::string_view pem, std::string_view where);

  PublicKey(PublicKey&&) noexcept;
  PublicKey& operator=(PublicKey&&) noexcept;
  ~PublicKey();

  Algorithm algorithm() const { return algorithm_; }
  const Bytes& spki() const { return spki_; }
  const Digest& id() const { return id_; }
  // The inverse of from_pem.
  std::string pem() const;

  // `properties` chooses among OpenSSL's implementations ("fips=yes"), null: any. A signature in any but its one
  // spelling is Broken; CannotCheck means that no implementation was found.
  Verdict check(ByteView message, ByteView signature, const char* properties = nullptr) const;

 private:
  struct Handle;  // the crypto library's

  PublicKey(Algorithm algorithm, ByteView der, std::string_view where);

  Algorithm algorithm_;
  std::unique_ptr<Handle> handle_;
  Bytes spki_;
  Digest id_;
};

}  // namespace sealift::bundle
