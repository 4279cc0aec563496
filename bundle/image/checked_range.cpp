// SPDX-License-Identifier: Apache-2.0
// A chunk is read outside of the lock, so that others are served meanwhile from what is kept.
#include "bundle/image/checked_range.hpp"

#include <algorithm>
#include <cstring>

namespace sealift::bundle {

CheckedRange::CheckedRange(const PayloadReader& payload, std::uint64_t offset, std::uint64_t size, std::uint64_t memory)
    : payload_(payload), offset_(offset), size_(size), memory_(memory) {}

void CheckedRange::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const std::uint64_t at = offset_ + offset, index = payload_.layout().at(at);
    const Chunk bytes = chunk(index);
    const auto inside = static_cast<std::size_t>(at - payload_.layout().begin_of(index));
    const std::size_t count = std::min(out.size(), bytes->size() - inside);
    std::memcpy(out.data(), bytes->view().data() + inside, count);
    out = out.subspan(count);
    offset += count;
  }
}

std::uint64_t CheckedRange::chunks_read() const {
  const std::lock_guard lock(guard_);
  return reads_;
}

std::vector<std::uint64_t> CheckedRange::chunks_in_order() const {
  const std::lock_guard lock(guard_);
  return order_;
}

CheckedRange::Chunk CheckedRange::chunk(std::uint64_t index) const {
  std::unique_lock lock(guard_);
  for (auto there = kept_.find(index); there != kept_.end(); there = kept_.find(index)) {
    if (there->second.bytes) {
      there->second.used = ++clock_;
      return there->second.bytes;
    }
    changed_.wait(lock);
  }
  kept_.emplace(index, Kept{});
  lock.unlock();
  Chunk bytes;
  try {
    bytes = std::make_shared<const ChunkBuffer>(payload_.chunk(index));
  } catch (...) {
    lock.lock();
    kept_.erase(index);
    changed_.notify_all();
    throw;
  }
  lock.lock();
  kept_[index] = {.bytes = bytes, .used = ++clock_};
  bytes_ += bytes->size();
  ++reads_;
  if (known_.insert(index).second) order_.push_back(index);
  forget_oldest();
  changed_.notify_all();
  return bytes;
}

// With the lock held. What somebody copies from right now lives on until they are done.
void CheckedRange::forget_oldest() const {
  while (bytes_ > memory_) {
    auto oldest = kept_.end();
    std::size_t whole = 0;
    for (auto one = kept_.begin(); one != kept_.end(); ++one) {
      if (!one->second.bytes) continue;
      ++whole;
      if (oldest == kept_.end() || one->second.used < oldest->second.used) oldest = one;
    }
    if (whole < 2) return;
    bytes_ -= oldest->second.bytes->size();
    kept_.erase(oldest);
  }
}

}  // namespace sealift::bundle
