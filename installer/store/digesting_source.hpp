// SPDX-License-Identifier: Apache-2.0
// Hashes a wheel while it is read by random access, since its digest names its item in the store. Once its directory is
// known, members are read in archive order, and the bytes skipped between two of them (RECORD, a data descriptor) are
// hashed too while their chunk is in memory.
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

  // From here on the bytes are mostly read in order.
  void follow() { follows_ = true; }

  // Of all bytes; the source cannot be used afterwards.
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
