// SPDX-License-Identifier: Apache-2.0
// SHA-256 as a stream: the only door to OpenSSL's libcrypto in this half.
// Every file of a checkpoint is hashed once when it is written and once when it is read.
// The digest that a bundle uses and that `sha256sum` prints, so that a checkpoint can be checked and carried without
// this code. Only a program that saves or loads needs libcrypto; it needs no LibTorch, for programs that only read
// files.
#pragma once

#include <sealift/train/bodies.hpp>

#include <cstddef>
#include <memory>
#include <string>

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace sealift::train {

/// SHA-256 over bytes that arrive in pieces.
class Sha256 {
 public:
  static constexpr std::size_t kHexDigits = 64;

  Sha256();

  void update(const void* data, std::size_t bytes);

  /// The digest of everything so far, as 64 lower-case hexadecimal digits. The last call on this object.
  std::string hex();

 private:
  static void check(bool good);

  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/checkpoint/digest_inl.hpp>
#endif
