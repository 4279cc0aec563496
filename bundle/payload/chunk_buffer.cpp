// SPDX-License-Identifier: Apache-2.0
#include "sealift/bundle/payload/chunk_buffer.hpp"

#include <cstring>
#include <new>
#include <utility>

namespace sealift::bundle {
namespace {

constexpr std::size_t up_to_a_page(std::size_t size) {
  return (size + ChunkBuffer::kAlignment - 1) / ChunkBuffer::kAlignment * ChunkBuffer::kAlignment;
}

}  // namespace

ChunkBuffer::ChunkBuffer(std::size_t capacity) {
  reserve(capacity);
}

ChunkBuffer::ChunkBuffer(ChunkBuffer&& other) noexcept {
  *this = std::move(other);
}

ChunkBuffer& ChunkBuffer::operator=(ChunkBuffer&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(capacity_, other.capacity_);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

std::span<std::byte> ChunkBuffer::whole_pages() {
  return {memory_.get(), up_to_a_page(size_)};
}

void ChunkBuffer::append(ByteView bytes) {
  std::memcpy(memory_.get() + size_, bytes.data(), bytes.size());
  size_ += bytes.size();
}

std::span<std::byte> ChunkBuffer::resize(std::size_t size) {
  reserve(size);
  size_ = size;
  return {memory_.get(), size_};
}

void ChunkBuffer::reserve(std::size_t capacity) {
  if (capacity <= capacity_) return;
  capacity_ = up_to_a_page(capacity);
  size_ = 0;
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, capacity_)));
  if (!memory_) throw std::bad_alloc();
}

}  // namespace sealift::bundle
