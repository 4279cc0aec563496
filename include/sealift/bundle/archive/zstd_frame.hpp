// SPDX-License-Identifier: Apache-2.0
// What a zstd frame must be before zstd decodes it: one frame of its kind, with size and checksum, without dictionary,
// and no compressed block of no bytes. The bytes may come in any pieces. Frame format: RFC 8878, section 3.1.1.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "sealift/bundle/core/bytes.hpp"
#include "sealift/bundle/core/error.hpp"

namespace sealift::bundle {

class ZstdFrame {
 public:
  explicit ZstdFrame(std::string where) : where_(std::move(where)) {}

  // Throws Format at the first byte that no acceptable frame has there. What follows the last block is not looked at.
  void see(ByteView input) {
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

  // What the header says comes out; nothing before the whole header was seen.
  std::optional<std::uint64_t> said() const { return said_; }

  [[noreturn]] void refuse(const char* why) const {
    throw Error(ErrorCode::Format, {.what = "compressed bytes are not acceptable", .where = where_, .got = why});
  }

 private:
  // Magic (a skippable frame has another), descriptor, window where the content is not one segment, content size. zstd
  // itself does not compare that size when the last block is empty and comes apart from the others.
  void see_header(unsigned char byte) {
    static constexpr unsigned char kMagic[4] = {0x28, 0xb5, 0x2f, 0xfd};
    if (seen_ < 4 && byte != kMagic[seen_]) refuse("it does not start with a zstd frame");
    if (seen_ == 4) see_descriptor(byte);
    if (seen_ >= size_begin_) size_ |= std::uint64_t{byte} << (8 * (seen_ - size_begin_));
    if (++seen_ == size_end_) said_ = size_end_ - size_begin_ == 2 ? size_ + 256 : size_;
  }
  void see_descriptor(unsigned char descriptor) {
    if ((descriptor & 0b11) != 0) refuse("the zstd frame wants a dictionary");
    if ((descriptor & 0b100) == 0) refuse("the zstd frame has no checksum");
    if ((descriptor & 0b1110'0000) == 0) refuse("the zstd frame does not say its size");
    const bool one_segment = (descriptor & 0b10'0000) != 0;
    size_begin_ = one_segment ? 5 : 6;
    size_end_ = size_begin_ + (1U << (descriptor >> 6));  // 1 (of one segment only), 2, 4 or 8 bytes
  }

  // Three bytes, the low ones first: is it the last, its type (raw, one byte repeated, compressed, none), its size.
  // zstd 1.5.4 takes a compressed block of no bytes when the frame comes in pieces and refuses it when it comes whole.
  void see_block_header(unsigned char byte) {
    static constexpr std::uint32_t kRepeated = 1, kCompressed = 2;
    block_ |= std::uint32_t{byte} << (8 * block_bytes_);
    if (++block_bytes_ < 3) return;
    const std::uint32_t type = block_ >> 1 & 3, size = block_ >> 3;
    if (type == kCompressed && size == 0) refuse("a compressed block has no bytes");
    last_ = (block_ & 1) != 0;
    skip_ = type == kRepeated ? 1 : size;
    block_ = block_bytes_ = 0;
  }

  std::string where_;
  std::uint32_t seen_ = 0;         // bytes of the header
  std::uint32_t size_begin_ = 18;  // where in it the content size stands; 18 is as long as it can be
  std::uint32_t size_end_ = 18;
  std::uint64_t size_ = 0;
  std::optional<std::uint64_t> said_;
  std::uint32_t block_ = 0;        // the header that is being read
  std::uint32_t block_bytes_ = 0;  // of it so far
  std::uint32_t skip_ = 0;         // bytes of a block's body before the next header
  bool last_ = false;
};

}  // namespace sealift::bundle
