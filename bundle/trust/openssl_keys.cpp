// SPDX-License-Identifier: Apache-2.0
// DER in and out of OpenSSL; see openssl_keys.hpp.
#include "bundle/trust/openssl_keys.hpp"

#include <algorithm>
#include <string>

namespace sealift::bundle::detail {

const unsigned char* data_of(ByteView view) {
  return reinterpret_cast<const unsigned char*>(view.data());
}

Bytes take_der(unsigned char* der, int size) {
  if (size <= 0) throw Error(ErrorCode::CannotCheck, {.what = "a key cannot be written", .got = openssl_reason()});
  const auto* begin = reinterpret_cast<const std::byte*>(der);
  Bytes bytes(begin, begin + size);
  OPENSSL_free(der);
  return bytes;
}

bool is_canonical_ecdsa_signature(ByteView signature, const AlgorithmFacts& facts) {
  const unsigned char* cursor = data_of(signature);
  const EcdsaSignature parsed(
      signature.size() > 256 ? nullptr : d2i_ECDSA_SIG(nullptr, &cursor, static_cast<long>(signature.size())));
  ERR_clear_error();
  if (!parsed || cursor != data_of(signature) + signature.size()) return false;
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(parsed.get(), &der);
  const Bytes again = take_der(der, size);
  if (!std::equal(again.begin(), again.end(), signature.begin(), signature.end())) return false;
  BIGNUM* number = nullptr;
  BN_hex2bn(&number, std::string(facts.order).c_str());
  const BigNumber order(number);
  for (const BIGNUM* part : {ECDSA_SIG_get0_r(parsed.get()), ECDSA_SIG_get0_s(parsed.get())})
    if (BN_is_zero(part) || BN_is_negative(part) || BN_cmp(part, order.get()) >= 0) return false;
  return true;
}

bool set_identity(EVP_PKEY_CTX* context, Algorithm algorithm) {
  return algorithm != Algorithm::Sm2 || EVP_PKEY_CTX_set1_id(context, kSm2Identity.data(), kSm2Identity.size()) == 1;
}

}  // namespace sealift::bundle::detail
