// SPDX-License-Identifier: Apache-2.0
// SHA-384 and SHA-512 of bytes that arrive in pieces, for wheels whose RECORD was written with one of them. Apart from
// digest.hpp, whose digests name things of a bundle: nothing is named by these.
#pragma once

#include <cstddef>

#include "bundle/core/openssl.hpp"
#include "sealift/bundle/core/bytes.hpp"

namespace sealift::bundle {

inline constexpr std::size_t kSha384Size = 48, kSha512Size = 64;

class WideHasher {
 public:
  // `size` is that of the digest, and says of which algorithm it is. Throws CannotCheck where the crypto library lacks
  // that one.
  explicit WideHasher(std::size_t size);

  void update(ByteView bytes);
  // Once: the digest of all of them.
  Bytes finish();

 private:
  [[noreturn]] void fail() const;

  std::size_t size_;
  MdContext context_;
};

}  // namespace sealift::bundle
