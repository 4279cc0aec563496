// SPDX-License-Identifier: Apache-2.0
// Memory for one chunk, on its way into a volume or out of one. It begins and ends on a page, as reads and writes past
// the system's cache ask for.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "sealift/bundle/core/bytes.hpp"

namespace sealift::bundle {

// Can only be moved; what was moved from is empty.
class ChunkBuffer {
 public:
  static constexpr std::size_t kAlignment = 4096;  // of memory, offsets and sizes that go past the cache

  ChunkBuffer() = default;
  explicit ChunkBuffer(std::size_t capacity) { reserve(capacity); }
  ChunkBuffer(ChunkBuffer&& other) noexcept { *this = std::move(other); }
  ChunkBuffer& operator=(ChunkBuffer&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(capacity_, other.capacity_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  std::size_t capacity() const { return capacity_; }
  std::size_t room() const { return capacity_ - size_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  ByteView view() const { return {memory_.get(), size_}; }
  // At most room() bytes.
  void append(ByteView bytes) {
    std::memcpy(memory_.get() + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  void clear() { size_ = 0; }
  // Keeps the first `size` bytes, of at least as many.
  void shorten(std::size_t size) { size_ = size; }
  // Exactly `size` bytes, for somebody to fill: what stood in them is lost.
  std::span<std::byte> resize(std::size_t size) {
    reserve(size);
    size_ = size;
    return {memory_.get(), size_};
  }
  std::span<std::byte> all() { return {memory_.get(), size_}; }
  // The same bytes and what is behind them, up to the end of a page.
  std::span<std::byte> whole_pages() { return {memory_.get(), up_to_a_page(size_)}; }

 private:
  static constexpr std::size_t up_to_a_page(std::size_t size) {
    return (size + kAlignment - 1) / kAlignment * kAlignment;
  }
  void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    capacity_ = up_to_a_page(capacity);
    size_ = 0;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, capacity_)));
    if (!memory_) throw std::bad_alloc();
  }

  struct Freer {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Freer> memory_;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
};

}  // namespace sealift::bundle
