// SPDX-License-Identifier: Apache-2.0
// The only door to OpenSSL: handles that free themselves, and a start-up that reads no configuration file of the host.
// `digest` and `signature` are built on it; nothing else includes an OpenSSL header.
#pragma once

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "sealift/bundle/error.hpp"

namespace sealift::bundle::detail {

// A host's openssl.cnf may load engines into the process that verifies; ours never looks at it.
inline void start_openssl() {
  static const int kStarted = OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  if (kStarted != 1) throw Error(ErrorCode::CannotCheck, {.what = "the crypto library did not start"});
}

template <auto Free>
struct Freer {
  template <class T>
  void operator()(T* handle) const {
    Free(handle);
  }
};

using MdContext = std::unique_ptr<EVP_MD_CTX, Freer<EVP_MD_CTX_free>>;
using KeyHandle = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Freer<EVP_PKEY_CTX_free>>;
using BioHandle = std::unique_ptr<BIO, Freer<BIO_free_all>>;

// The library's own reason for its last failure; clears its queue.
inline std::string openssl_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  return reason != nullptr ? reason : "no reason given";
}

}  // namespace sealift::bundle::detail
