// SPDX-License-Identifier: Apache-2.0
// What a zstd frame must be before zstd decodes it: one frame of its kind, with size and checksum, without dictionary,
// and no compressed block of no bytes. The bytes may come in any pieces. Frame format: RFC 8878, section 3.1.1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "sealift/bundle/core/bytes.hpp"

namespace sealift::bundle {

class ZstdFrame {
 public:
  // `where` is for messages.
  explicit ZstdFrame(std::string where) : where_(std::move(where)) {}

  // Throws Format at the first byte that no acceptable frame has there. What follows the last block is not looked at.
  void see(ByteView input);

  // The size of the content as the header states it; nothing before the whole header was seen.
  std::optional<std::uint64_t> said() const { return said_; }

  // Throws Format, saying why these bytes are not acceptable.
  [[noreturn]] void refuse(const char* why) const;

 private:
  void see_header(unsigned char byte);
  void see_descriptor(unsigned char descriptor);
  void see_block_header(unsigned char byte);

  std::string where_;
  std::uint32_t seen_ = 0;         // bytes of the header so far
  std::uint32_t size_begin_ = 18;  // offset of the content size in it; 18 is the longest header
  std::uint32_t size_end_ = 18;
  std::uint64_t size_ = 0;
  std::optional<std::uint64_t> said_;
  std::uint32_t block_ = 0;        // the block header that is being read
  std::uint32_t block_bytes_ = 0;  // bytes of it so far
  std::uint32_t skip_ = 0;         // bytes of a block's body before the next header
  bool last_ = false;
};

}  // namespace sealift::bundle
