// SPDX-License-Identifier: Apache-2.0
// SHA-256 as a stream: the only door to OpenSSL's libcrypto in this half.
// Every file of a checkpoint is hashed once when it is written and once when it is read.
// The digest that a bundle uses and that `sha256sum` prints, so that a checkpoint can be checked and carried without
// this code. Only a program that saves or loads needs libcrypto; without LibTorch, for those that read files alone.
#pragma once

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <string>

namespace sealift::train {

/// SHA-256 over bytes that arrive in pieces.
class Sha256 {
 public:
  static constexpr std::size_t kHexDigits = 64;

  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    // A host's openssl.cnf may load code into the process, so it is not read.
    static const int kStarted = OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
    check(kStarted == 1 && context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }

  void update(const void* data, std::size_t bytes) { check(EVP_DigestUpdate(context_.get(), data, bytes) == 1); }

  /// The digest of everything so far, as 64 lower-case hexadecimal digits. The last call on this object.
  std::string hex() {
    std::array<unsigned char, 32> digest{};
    check(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1);
    std::string text;
    for (const auto byte : digest) {
      text += "0123456789abcdef"[byte >> 4];
      text += "0123456789abcdef"[byte & 15];
    }
    return text;
  }

 private:
  static void check(bool good) {
    if (!good)
      throw std::runtime_error("libcrypto does not compute SHA-256; without it nothing can be written or checked");
  }

  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace sealift::train
