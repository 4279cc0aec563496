// SPDX-License-Identifier: Apache-2.0
#include "bundle/core/wide_digest.hpp"

#include "sealift/bundle/core/error.hpp"

namespace sealift::bundle {

namespace {

const EVP_MD* wide_method(std::size_t size) {
  start_openssl();
  static EVP_MD* const kSha384 = EVP_MD_fetch(nullptr, "SHA384", "?fips=yes");
  static EVP_MD* const kSha512 = EVP_MD_fetch(nullptr, "SHA512", "?fips=yes");
  return size == kSha384Size ? kSha384 : kSha512;
}

}  // namespace

WideHasher::WideHasher(std::size_t size) : size_(size), context_(EVP_MD_CTX_new()) {
  const EVP_MD* method = wide_method(size_);
  if (!context_ || method == nullptr || EVP_DigestInit_ex(context_.get(), method, nullptr) != 1) fail();
}

void WideHasher::update(ByteView bytes) {
  if (EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) != 1) fail();
}

Bytes WideHasher::finish() {
  Bytes digest(size_);
  if (EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr) != 1) fail();
  return digest;
}

void WideHasher::fail() const {
  throw Error(ErrorCode::CannotCheck,
              {.what = "the crypto library cannot compute " + std::string(size_ == kSha384Size ? "SHA-384" : "SHA-512"),
               .got = openssl_reason()});
}

}  // namespace sealift::bundle
