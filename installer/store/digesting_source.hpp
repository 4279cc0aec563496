// SPDX-License-Identifier: Apache-2.0
// A wheel is read by random access, yet its own digest names its place in the store: so the bytes are hashed as they
// pass, in order. Once its directory is known its members are read in their order, and what is skipped between two of
// them (RECORD, a data descriptor) is hashed on the way, while its chunk is in memory.
#pragma once

#include <memory>

#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::installer {

class DigestingSource final : public bundle::ByteSource {
 public:
  explicit DigestingSource(std::unique_ptr<bundle::ByteSource> source) : source_(std::move(source)) {}

  std::uint64_t size() const override { return source_->size(); }
  std::string name() const override { return source_->name(); }
  bundle::ByteView view(std::uint64_t offset, std::size_t wanted) override {
    while (follows_ && hashed_ < offset && offset - hashed_ <= bundle::kDefaultChunkSize)
      hash_on(static_cast<std::size_t>(offset - hashed_));
    const bundle::ByteView piece = source_->view(offset, wanted);
    if (offset <= hashed_ && hashed_ < offset + piece.size()) {
      hasher_.update(piece.subspan(static_cast<std::size_t>(hashed_ - offset)));
      hashed_ = offset + piece.size();
    }
    return piece;
  }

  // From here on the bytes are asked for in order, but for some.
  void follow() { follows_ = true; }

  // Of all bytes. The source is used up.
  bundle::Digest digest() {
    while (hashed_ < size()) hash_on(std::size_t{1} << 20);
    return hasher_.finish();
  }

 private:
  void hash_on(std::size_t wanted) {
    const bundle::ByteView piece = source_->view(hashed_, wanted);
    hasher_.update(piece);
    hashed_ += piece.size();
  }

  std::unique_ptr<bundle::ByteSource> source_;
  bundle::Hasher hasher_;
  std::uint64_t hashed_ = 0;  // bytes from the start
  bool follows_ = false;
};

}  // namespace sealift::installer
