// SPDX-License-Identifier: Apache-2.0
#include "bundle/archive/zstd_frame.hpp"

#include <algorithm>

#include "sealift/bundle/core/error.hpp"

namespace sealift::bundle {

// The header: magic number (a skippable frame has another one), descriptor, window if the content is not one segment,
// content size. zstd itself does not compare that size when the last block is empty and is fed separately.
void ZstdFrame::see_header(unsigned char byte) {
  static constexpr unsigned char kMagic[4] = {0x28, 0xb5, 0x2f, 0xfd};
  if (seen_ < 4 && byte != kMagic[seen_]) refuse("it does not start with a zstd frame");
  if (seen_ == 4) see_descriptor(byte);
  if (seen_ >= size_begin_) size_ |= std::uint64_t{byte} << (8 * (seen_ - size_begin_));
  if (++seen_ == size_end_) said_ = size_end_ - size_begin_ == 2 ? size_ + 256 : size_;
}

void ZstdFrame::see_descriptor(unsigned char descriptor) {
  if ((descriptor & 0b11) != 0) refuse("the zstd frame wants a dictionary");
  if ((descriptor & 0b100) == 0) refuse("the zstd frame has no checksum");
  if ((descriptor & 0b1110'0000) == 0) refuse("the zstd frame does not say its size");
  const bool one_segment = (descriptor & 0b10'0000) != 0;
  size_begin_ = one_segment ? 5 : 6;
  size_end_ = size_begin_ + (1U << (descriptor >> 6));  // 1 (only if one segment), 2, 4 or 8 bytes
}

// A block header: three bytes, little-endian, with the last-block flag, the type (raw, one byte repeated, compressed,
// reserved) and the size. zstd 1.5.4 accepts a compressed block of no bytes when the frame is fed in pieces and refuses
// it when it is fed whole.
void ZstdFrame::see_block_header(unsigned char byte) {
  static constexpr std::uint32_t kRepeated = 1, kCompressed = 2;
  block_ |= std::uint32_t{byte} << (8 * block_bytes_);
  if (++block_bytes_ < 3) return;
  const std::uint32_t type = block_ >> 1 & 3, size = block_ >> 3;
  if (type == kCompressed && size == 0) refuse("a compressed block has no bytes");
  last_ = (block_ & 1) != 0;
  skip_ = type == kRepeated ? 1 : size;
  block_ = block_bytes_ = 0;
}

void ZstdFrame::see(ByteView input) {
  while (!input.empty() && !said_) {
    see_header(std::to_integer<unsigned char>(input[0]));
    input = input.subspan(1);
  }
  while (!input.empty() && !last_) {
    if (skip_ == 0) {
      see_block_header(std::to_integer<unsigned char>(input[0]));
      input = input.subspan(1);
    } else {
      const auto now = std::min<std::size_t>(skip_, input.size());
      skip_ -= now;
      input = input.subspan(now);
    }
  }
}

void ZstdFrame::refuse(const char* why) const {
  throw Error(ErrorCode::Format, {.what = "compressed bytes are not acceptable", .where = where_, .got = why});
}

}  // namespace sealift::bundle
