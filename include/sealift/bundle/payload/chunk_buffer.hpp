// SPDX-License-Identifier: Apache-2.0
// Memory for one chunk, on its way into a volume or out of one. It begins and ends on a page boundary, as reads and
// writes that bypass the system's page cache require.
#pragma once

#include <cstdlib>
#include <memory>
#include <span>

#include "sealift/bundle/core/bytes.hpp"

namespace sealift::bundle {

// Can be moved, not copied; a moved-from buffer is empty.
class ChunkBuffer {
 public:
  // Alignment in bytes of the memory, offsets and sizes of reads and writes that bypass the page cache.
  static constexpr std::size_t kAlignment = 4096;

  ChunkBuffer() = default;
  // Empty, with room for `capacity` bytes, rounded up to whole pages.
  explicit ChunkBuffer(std::size_t capacity);
  ChunkBuffer(ChunkBuffer&& other) noexcept;
  ChunkBuffer& operator=(ChunkBuffer&& other) noexcept;

  std::size_t capacity() const { return capacity_; }
  // How many more bytes fit.
  std::size_t room() const { return capacity_ - size_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // The bytes, to read.
  ByteView view() const { return {memory_.get(), size_}; }
  // The bytes, to write.
  std::span<std::byte> all() { return {memory_.get(), size_}; }
  // The bytes and what follows them up to the end of their last page.
  std::span<std::byte> whole_pages();

  // Adds a copy of `bytes`, which must be at most room() bytes.
  void append(ByteView bytes);
  // Makes the buffer hold exactly `size` bytes of unspecified content, and returns them to be filled.
  std::span<std::byte> resize(std::size_t size);
  // Keeps the first `size` bytes, which must be at most size().
  void shorten(std::size_t size) { size_ = size; }
  // Empties the buffer; its memory stays.
  void clear() { size_ = 0; }

 private:
  void reserve(std::size_t capacity);

  struct Freer {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Freer> memory_;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
};

}  // namespace sealift::bundle
