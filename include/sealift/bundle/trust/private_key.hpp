// SPDX-License-Identifier: Apache-2.0
// A private key: made, kept as PKCS#8 PEM (with a passphrase if there is one), and signing. Only the connected side
// and tests have any; what a signature is over is said by envelope.hpp.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "sealift/bundle/trust/public_key.hpp"

namespace sealift::bundle {

class PrivateKey {
 public:
  // Throws CannotCheck when the crypto library lacks the algorithm.
  static PrivateKey generate(Algorithm algorithm = Algorithm::Ed25519);
  // PKCS#8 PEM; `passphrase` is for an encrypted one. Throws Usage saying what the text is instead.
  static PrivateKey from_pem(std::string_view pem, std::string_view where, const std::string& passphrase = {});

  PrivateKey(PrivateKey&&) noexcept;
  PrivateKey& operator=(PrivateKey&&) noexcept;
  ~PrivateKey();

  // The inverse of from_pem; encrypted with AES-256 when there is a passphrase.
  std::string pem(const std::string& passphrase = {}) const;

  const PublicKey& public_key() const { return public_; }

  // Ed25519 gives the same signature each time (RFC 8032); ECDSA and SM2 another one each time.
  Bytes sign(ByteView message) const;

 private:
  struct Handle;  // the crypto library's

  PrivateKey(std::unique_ptr<Handle> handle, std::string_view where);

  std::unique_ptr<Handle> handle_;
  PublicKey public_;
};

}  // namespace sealift::bundle
