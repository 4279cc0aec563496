// SPDX-License-Identifier: Apache-2.0
// A wheel is read by random access, yet its own digest names its place in the store: so the bytes are hashed as they
// pass, in order, and only what nobody asked for in order is read again at the end. The members of an acceptable zip
// stand one behind the other, hence that is little more than the directory.
#pragma once

#include <memory>

#include "sealift/bundle/byte_source.hpp"
#include "sealift/bundle/digest.hpp"

namespace sealift::installer {

class DigestingSource final : public bundle::ByteSource {
 public:
  explicit DigestingSource(std::unique_ptr<bundle::ByteSource> source) : source_(std::move(source)) {}

  std::uint64_t size() const override { return source_->size(); }
  std::string name() const override { return source_->name(); }
  bundle::ByteView view(std::uint64_t offset, std::size_t wanted) override {
    const bundle::ByteView piece = source_->view(offset, wanted);
    if (offset <= hashed_ && hashed_ < offset + piece.size()) {
      hasher_.update(piece.subspan(static_cast<std::size_t>(hashed_ - offset)));
      hashed_ = offset + piece.size();
    }
    return piece;
  }

  // Of all bytes. The source is used up.
  bundle::Digest digest() {
    while (hashed_ < size()) view(hashed_, std::size_t{1} << 20);
    return hasher_.finish();
  }

 private:
  std::unique_ptr<bundle::ByteSource> source_;
  bundle::Hasher hasher_;
  std::uint64_t hashed_ = 0;  // bytes from the start
};

}  // namespace sealift::installer
