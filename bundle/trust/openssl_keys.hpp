// SPDX-License-Identifier: Apache-2.0
// What public and private keys share of OpenSSL's API. Internal: the public headers of keys name no type of OpenSSL.
#pragma once

#include "bundle/core/openssl.hpp"
#include "sealift/bundle/core/bytes.hpp"
#include "sealift/bundle/trust/algorithm.hpp"

namespace sealift::bundle::detail {

// The bytes as OpenSSL takes them.
const unsigned char* data_of(ByteView view);

// What OpenSSL wrote into a buffer of its own, which is freed; throws CannotCheck when `size` says that it failed.
Bytes take_der(unsigned char* der, int size);

// DER of two integers in [1, n-1], in the one spelling that DER has; nothing behind it.
bool is_canonical_ecdsa_signature(ByteView signature, const AlgorithmFacts& facts);

// SM2 needs its identity set on both sides; the others need nothing.
bool set_identity(EVP_PKEY_CTX* context, Algorithm algorithm);

}  // namespace sealift::bundle::detail
