// SPDX-License-Identifier: Apache-2.0
// Counts the bytes that LibTorch's CPU allocator has handed out and not freed, in all and by thread, which is by rank.
// For the tests that hold the core to bounds of memory. From the allocator and not from the system, so that a bound is
// the same on every machine. Counting replaces the allocator of the whole process.
#pragma once

#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace sealift::test {

/// Bytes that are out now, and the most that were since `peak` was set.
struct ByteCount {
  std::atomic<std::int64_t> live = 0, peak = 0;

  void add(std::int64_t bytes) {
    const auto now = live += bytes;
    for (auto seen = peak.load(); now > seen && !peak.compare_exchange_weak(seen, now);) {
    }
  }
};

class CountingAllocator final : public c10::Allocator {
 public:
  /// Counts from the first call on.
  static void install() {
    static CountingAllocator counting(c10::GetDefaultCPUAllocator());
    c10::SetCPUAllocator(&counting, /*priority=*/1);
  }

  static inline ByteCount all;
  static inline thread_local const std::shared_ptr<ByteCount> mine = std::make_shared<ByteCount>();

  c10::DataPtr allocate(std::size_t bytes) override {
    auto inner = real_->allocate(bytes);
    void* data = inner.get();
    if (!data) return inner;
    all.add(static_cast<std::int64_t>(bytes));
    mine->add(static_cast<std::int64_t>(bytes));
    const std::lock_guard lock(guard_);
    blocks_[data] = {std::move(inner), static_cast<std::int64_t>(bytes), mine};
    return {data, data, &release, c10::Device(c10::kCPU)};
  }
  /// oneDNN takes its memory raw: the context must be the data.
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  struct Block {
    c10::DataPtr inner;
    std::int64_t bytes = 0;
    std::shared_ptr<ByteCount> owner;  ///< the thread that allocated it, whichever frees it
  };

  explicit CountingAllocator(c10::Allocator* real) : real_(real) {}

  static void release(void* data) {
    Block block;
    {
      const std::lock_guard lock(guard_);
      const auto found = blocks_.find(data);
      block = std::move(found->second);
      blocks_.erase(found);
    }
    all.live -= block.bytes;
    block.owner->live -= block.bytes;
  }

  static inline std::mutex guard_;
  static inline auto& blocks_ = *new std::unordered_map<void*, Block>;  // never destroyed: tensors may outlive it

  c10::Allocator* real_;
};

}  // namespace sealift::test
