// SPDX-License-Identifier: Apache-2.0
// Digests by OpenSSL; see digest.hpp.
#include "sealift/bundle/core/digest.hpp"

#include <algorithm>

#include "bundle/core/openssl.hpp"
#include "sealift/bundle/core/error.hpp"

namespace sealift::bundle {

std::optional<Digest> Digest::from_bytes(ByteView view) {
  if (view.size() != kSize) return std::nullopt;
  Digest digest;
  std::copy(view.begin(), view.end(), digest.bytes.begin());
  return digest;
}

std::optional<Digest> Digest::from_hex(std::string_view text) {
  const std::optional<Bytes> bytes = bundle::from_hex(text);
  return bytes ? from_bytes(*bytes) : std::nullopt;
}

std::string name_of(DigestAlgorithm algorithm) {
  return algorithm == DigestAlgorithm::Sm3 ? "sm3" : "sha256";
}

std::optional<DigestAlgorithm> digest_algorithm(std::string_view name) {
  for (const DigestAlgorithm algorithm : {DigestAlgorithm::Sha256, DigestAlgorithm::Sm3})
    if (name == name_of(algorithm)) return algorithm;
  return std::nullopt;
}

class Hasher::Stream {
 public:
  explicit Stream(DigestAlgorithm algorithm) : algorithm_(algorithm), context_(EVP_MD_CTX_new()) { reset(); }

  void update(ByteView bytes) {
    if (EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) != 1) fail();
  }
  Digest finish() {
    Digest digest;
    if (EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.bytes.data()), nullptr) != 1) fail();
    reset();
    return digest;
  }

 private:
  void reset() {
    const EVP_MD* method = algorithm_ == DigestAlgorithm::Sm3 ? sm3_method() : sha256_method();
    if (!context_ || method == nullptr || EVP_DigestInit_ex(context_.get(), method, nullptr) != 1) fail();
  }
  [[noreturn]] void fail() const {
    throw Error(ErrorCode::CannotCheck,
                {.what = "the crypto library cannot compute " + name_of(algorithm_), .got = openssl_reason()});
  }

  DigestAlgorithm algorithm_;
  MdContext context_;
};

Hasher::Hasher(DigestAlgorithm algorithm) : stream_(std::make_unique<Stream>(algorithm)) {}
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;
Hasher::~Hasher() = default;

void Hasher::update(ByteView bytes) {
  stream_->update(bytes);
}
Digest Hasher::finish() {
  return stream_->finish();
}

Digest digest_of(ByteView bytes, DigestAlgorithm algorithm) {
  Hasher hasher(algorithm);
  hasher.update(bytes);
  return hasher.finish();
}
Digest sha256(ByteView bytes) {
  return digest_of(bytes, DigestAlgorithm::Sha256);
}

}  // namespace sealift::bundle
