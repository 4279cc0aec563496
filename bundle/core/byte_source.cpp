// SPDX-License-Identifier: Apache-2.0
// Reads ranges of a source, each checked against its size first; see byte_source.hpp.
#include "sealift/bundle/core/byte_source.hpp"

#include <algorithm>
#include <cstring>

namespace sealift::bundle {
namespace {

constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;  // that a FileSource reads at once

}  // namespace

void ByteSource::read_exactly(std::uint64_t offset, std::span<std::byte> out) {
  check_range(offset, out.size());
  while (!out.empty()) {
    const ByteView piece = view(offset, out.size());
    std::memcpy(out.data(), piece.data(), piece.size());
    out = out.subspan(piece.size());
    offset += piece.size();
  }
}

Bytes ByteSource::read(std::uint64_t offset, std::uint64_t count) {
  check_range(offset, count);
  Bytes bytes(static_cast<std::size_t>(count));
  read_exactly(offset, bytes);
  return bytes;
}

void ByteSource::check_range(std::uint64_t offset, std::uint64_t count) const {
  if (offset <= size() && count <= size() - offset) return;
  throw Error(ErrorCode::Format, {.what = "a structure points past the end of its file",
                                  .where = name() + " at offset " + std::to_string(offset),
                                  .expected = std::to_string(count) + " bytes there",
                                  .got = std::to_string(offset > size() ? 0 : size() - offset) + " bytes"});
}

ByteView FileSource::view(std::uint64_t offset, std::size_t wanted) {
  if (offset < begin_ || offset >= begin_ + buffer_.size()) {
    buffer_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, size() - offset)));
    file_.read_exactly(offset, buffer_);
    begin_ = offset;
  }
  const ByteView rest = ByteView(buffer_).subspan(static_cast<std::size_t>(offset - begin_));
  return rest.first(std::min(wanted, rest.size()));
}

ByteView MemorySource::view(std::uint64_t offset, std::size_t wanted) {
  const ByteView rest = ByteView(bytes_).subspan(static_cast<std::size_t>(offset));
  return rest.first(std::min(wanted, rest.size()));
}

}  // namespace sealift::bundle
