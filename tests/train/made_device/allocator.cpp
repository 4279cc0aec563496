// SPDX-License-Identifier: Apache-2.0
#include "tests/train/made_device/allocator.hpp"

#include "tests/train/made_device/memory.hpp"
#include "tests/train/made_device/streams.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <new>
#include <set>
#include <vector>

namespace sealift::test::made {

namespace {

struct Block {
  void* memory = nullptr;
  std::size_t bytes = 0;
  std::int8_t device = 0;
  std::int64_t stream = 0;
  std::vector<Mark> used;  ///< by other streams, up to there
};

void fill(const Block& block) {
  queue(block.device, block.stream).push([at = for_kernels(block.memory), bytes = block.bytes] {
    std::memset(at, 0xff, bytes);  // NaN in every floating dtype
  });
}

/// Never destroyed: tensors may be freed by other threads while the process ends.
class Blocks {
 public:
  static Blocks& instance() {
    static auto* blocks = new Blocks;
    return *blocks;
  }

  Block* take(std::size_t bytes) {
    const auto device = current_device();
    const auto stream = current_stream(device);
    const auto rounded = (bytes + 511) / 512 * 512;
    in_use_.at(static_cast<std::size_t>(device)) += static_cast<std::int64_t>(rounded);
    const std::lock_guard lock(mutex_);
    auto& free = free_[{device, stream}];
    const auto fits = [&](const Block* block) {
      return block->bytes == rounded &&
             std::all_of(block->used.begin(), block->used.end(), [](const Mark& mark) { return mark.has_passed(); });
    };
    if (const auto found = std::find_if(free.begin(), free.end(), fits); found != free.end()) {
      auto* block = *found;
      free.erase(found);
      if (!block->used.empty()) fill(*block);  // the other streams wrote after it was filled
      block->used.clear();
      return block;
    }
    auto* block = new Block{new_memory(rounded), rounded, device, stream, {}};
    fill(*block);
    return block;
  }

  void give_back(Block* block) {
    in_use_.at(static_cast<std::size_t>(block->device)) -= static_cast<std::int64_t>(block->bytes);
    if (block->used.empty()) fill(*block);
    const std::lock_guard lock(mutex_);
    free_[{block->device, block->stream}].push_back(block);
  }

  void record(Block* block, Queue& by) {
    const std::lock_guard lock(mutex_);
    if (&queue(block->device, block->stream) != &by) block->used.push_back(made::record(by));
  }

  std::int64_t in_use(std::int8_t device) const { return in_use_.at(static_cast<std::size_t>(device)); }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::int8_t, std::int64_t>, std::vector<Block*>> free_;
  std::array<std::atomic<std::int64_t>, kDevices> in_use_{};
};

void free_block(void* block) {
  Blocks::instance().give_back(static_cast<Block*>(block));
}

class DeviceMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::Device device(c10::DeviceType::PrivateUse1, current_device());
    if (bytes == 0) return {nullptr, device};
    auto* block = Blocks::instance().take(bytes);
    return {block->memory, block, &free_block, device};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    current_queue(current_device()).push([to = for_kernels(to), from = for_kernels(from), bytes] {
      std::memcpy(to, from, bytes);
    });
  }
};

std::mutex pinned_mutex;
std::map<const char*, std::size_t>& pinned_ranges() {
  static auto* ranges = new std::map<const char*, std::size_t>;
  return *ranges;
}

void free_pinned(void* memory) {
  const std::lock_guard lock(pinned_mutex);
  pinned_ranges().erase(static_cast<const char*>(memory));
  std::free(memory);
}

class PinnedMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, c10::kCPU};
    void* memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!memory) throw std::bad_alloc();
    const std::lock_guard lock(pinned_mutex);
    pinned_ranges()[static_cast<const char*>(memory)] = bytes;
    return {memory, memory, &free_pinned, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_pinned; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

}  // namespace

c10::Allocator& device_allocator() {
  static DeviceMemory memory;
  return memory;
}

c10::Allocator& pinned_allocator() {
  static PinnedMemory memory;
  return memory;
}

bool is_pinned(const void* address) {
  const std::lock_guard lock(pinned_mutex);
  const auto& ranges = pinned_ranges();
  auto after = ranges.upper_bound(static_cast<const char*>(address));
  if (after == ranges.begin()) return false;
  --after;
  return static_cast<const char*>(address) < after->first + after->second;
}

void record_stream(const c10::DataPtr& memory, const c10::Stream& stream) {
  auto* block = static_cast<Block*>(memory.get_context());
  if (block) Blocks::instance().record(block, queue(stream.device_index(), stream.id()));
}

std::int64_t bytes_in_use(std::int8_t device) {
  return Blocks::instance().in_use(device);
}

}  // namespace sealift::test::made
