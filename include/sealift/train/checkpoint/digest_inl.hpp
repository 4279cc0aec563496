// SPDX-License-Identifier: Apache-2.0
// The bodies of digest.hpp, which declares them and says what they promise.
#pragma once

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sealift/train/checkpoint/digest.hpp>

#include <array>
#include <stdexcept>

namespace sealift::train {

SEALIFT_BODY Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  // A host's openssl.cnf may load code into the process, so it is not read.
  static const int kStarted = OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  check(kStarted == 1 && context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

SEALIFT_BODY void Sha256::update(const void* data, std::size_t bytes) {
  check(EVP_DigestUpdate(context_.get(), data, bytes) == 1);
}

SEALIFT_BODY std::string Sha256::hex() {
  std::array<unsigned char, 32> digest{};
  check(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1);
  std::string text;
  for (const auto byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

SEALIFT_BODY void Sha256::check(bool good) {
  if (!good)
    throw std::runtime_error("libcrypto does not compute SHA-256; without it nothing can be written or checked");
}

}  // namespace sealift::train
