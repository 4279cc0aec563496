// SPDX-License-Identifier: Apache-2.0
// The only door to OpenSSL: handles that free themselves, and a start-up that reads no configuration file of the host.
// Digests and keys are built on it; nothing else includes an OpenSSL header.
#pragma once

#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/provider.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "sealift/bundle/core/error.hpp"

namespace sealift::bundle {

// Once in a process, before anything else of OpenSSL; throws CannotCheck when it does not start. A host's openssl.cnf
// may load engines into the process that verifies, so it is never read.
void start_openssl();

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
using BigNumber = std::unique_ptr<BIGNUM, Freer<BN_free>>;
using EcdsaSignature = std::unique_ptr<ECDSA_SIG, Freer<ECDSA_SIG_free>>;
using X509PublicKeyHandle = std::unique_ptr<X509_PUBKEY, Freer<X509_PUBKEY_free>>;
using X509SignatureHandle = std::unique_ptr<X509_SIG, Freer<X509_SIG_free>>;
using Pkcs8Handle = std::unique_ptr<PKCS8_PRIV_KEY_INFO, Freer<PKCS8_PRIV_KEY_INFO_free>>;

// Looked up once; null where the library was built without the algorithm. SHA-256 is the FIPS provider's in a process
// that loaded one before; the root's profile is not known here, and the digest is the same.
const EVP_MD* sha256_method();
const EVP_MD* sm3_method();

// What was written into a memory BIO.
std::string text_of(BIO* bio);

// True when OpenSSL's FIPS provider is loaded in this process. We never load one: a provider is a shared object, and
// the static programs must not pull one in that was made for another C library.
bool has_fips_provider();

// The library's own reason for its last failure; clears its queue.
std::string openssl_reason();

}  // namespace sealift::bundle
