// SPDX-License-Identifier: Apache-2.0
// Starts OpenSSL and asks what it has; see openssl.hpp.
#include "bundle/core/openssl.hpp"

namespace sealift::bundle {

void start_openssl() {
  static const int kStarted = OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  if (kStarted != 1) throw Error(ErrorCode::CannotCheck, {.what = "the crypto library did not start"});
}

const EVP_MD* sha256_method() {
  start_openssl();
  static EVP_MD* const kMethod = EVP_MD_fetch(nullptr, "SHA256", "?fips=yes");
  return kMethod;
}

const EVP_MD* sm3_method() {
  start_openssl();
  static EVP_MD* const kMethod = EVP_MD_fetch(nullptr, "SM3", nullptr);
  return kMethod;
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

bool has_fips_provider() {
  start_openssl();
  return OSSL_PROVIDER_available(nullptr, "fips") == 1;
}

std::string openssl_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  return reason != nullptr ? reason : "no reason given";
}

}  // namespace sealift::bundle
