// SPDX-License-Identifier: Apache-2.0
// Memory for flats on the CPU that is kept: what one unit frees, the next one takes.
// Below `flat_param` and `flat_gradient`, which get all their buffers here.
// LibTorch's CUDA allocator keeps freed memory, but its CPU allocator returns it to the system, which then clears every
// page again: a tenth of a step where a model is gathered and freed each time. On other devices nothing is added.
// Mirrored by trainer/plan/pool.hpp: change both.
#pragma once

#include <sealift/train/flat/steady_buffers.hpp>

#include <utility>

namespace sealift::train::detail {

/// Allocates CPU memory and keeps what is freed, within a bound: memory in use and memory kept are together never more
/// than the most that was in use at one time since `release_kept`. Thread-safe.
class BufferPool final : public c10::Allocator {
 public:
  /// The pool of all flats; never destroyed, since a gradient may outlive everything else.
  static BufferPool& instance() {
    static auto* pool = new BufferPool;
    return *pool;
  }

  at::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, at::kCPU};
    auto block = std::make_unique<Block>();
    {
      const std::lock_guard lock(guard_);
      out_ += bytes;
      peak_ = std::max(peak_, out_);
      const auto fits =
          std::find_if(kept_.begin(), kept_.end(), [&](const auto& kept) { return kept->bytes == bytes; });
      if (fits != kept_.end()) {
        block = std::move(*fits);
        kept_bytes_ -= bytes;
        kept_.erase(fits);
      }
      trim();
    }
    try {
      if (!block->memory) *block = {bytes, c10::GetAllocator(at::kCPU)->allocate(bytes)};
    } catch (...) {
      const std::lock_guard lock(guard_);
      out_ -= bytes;
      peak_ = out_;  // memory is short: what was kept is freed
      trim();
      throw;
    }
    auto* data = block->memory.get();
    return {data, block.release(), &give_back, at::kCPU};
  }

  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

  /// Bytes that are kept for later allocations.
  std::size_t kept_bytes() const {
    const std::lock_guard lock(guard_);
    return kept_bytes_;
  }

  /// Returns what is kept to the system.
  void release_kept() {
    const std::lock_guard lock(guard_);
    peak_ = out_;
    trim();
  }

  /// Memory is kept while one of these exists; the last one frees it.
  struct User {
    User() {
      auto& pool = instance();
      const std::lock_guard lock(pool.guard_);
      if (pool.users_++ == 0) pool.peak_ = pool.out_;  // what was out before counts no more
    }
    ~User() {
      auto& pool = instance();
      bool last = false;
      {
        const std::lock_guard lock(pool.guard_);
        last = --pool.users_ == 0;
      }
      if (last) pool.release_kept();
    }
    User(const User&) = delete;
    User& operator=(const User&) = delete;
  };

  /// For tests: fills freed memory with NaN, so that reading before writing shows.
  void poison_returned(bool on) {
    const std::lock_guard lock(guard_);
    poison_ = on;
  }

 private:
  struct Block {
    std::size_t bytes = 0;
    at::DataPtr memory;
  };

  static void give_back(void* context) {
    auto& pool = instance();
    std::unique_ptr<Block> block(static_cast<Block*>(context));
    const std::lock_guard lock(pool.guard_);
    if (pool.poison_) std::memset(block->memory.get(), 0xff, block->bytes);
    pool.out_ -= block->bytes;
    if (pool.users_ == 0) return;
    pool.kept_bytes_ += block->bytes;
    pool.kept_.push_back(std::move(block));
    pool.trim();
  }

  void trim() {
    while (!kept_.empty() && out_ + kept_bytes_ > peak_) {
      kept_bytes_ -= kept_.front()->bytes;
      kept_.pop_front();
    }
  }

  mutable std::mutex guard_;
  std::list<std::unique_ptr<Block>> kept_;  ///< longest unused first
  std::size_t kept_bytes_ = 0, out_ = 0, peak_ = 0;
  std::int64_t users_ = 0;
  bool poison_ = false;
};

/// While it lives, `flat_buffer` takes memory of this thread's flats from `buffers`, unless null.
class UseBuffers {
 public:
  explicit UseBuffers(const std::shared_ptr<SteadyBuffers>& buffers)
      : before_(std::exchange(current(), buffers.get())) {}
  UseBuffers(const UseBuffers&) = delete;
  UseBuffers& operator=(const UseBuffers&) = delete;
  ~UseBuffers() { current() = before_; }

  static SteadyBuffers*& current() {
    thread_local SteadyBuffers* buffers = nullptr;
    return buffers;
  }

 private:
  SteadyBuffers* before_;
};

/// An uninitialised buffer of `numel` elements for a flat. [numel]
inline at::Tensor flat_buffer(std::int64_t numel, const at::TensorOptions& options) {
  const auto bytes = static_cast<std::size_t>(numel) * options.dtype().itemsize();
  if (auto* steady = UseBuffers::current(); steady && !options.pinned_memory()) {
    c10::Storage storage(c10::Storage::use_byte_size_t{}, bytes, steady->take(bytes, options.device()),
                         c10::GetAllocator(options.device().type()), /*resizable=*/true);
    return torch::empty({0}, options).set_(storage, 0, {numel}, {1});
  }
  if (!options.device().is_cpu() || options.pinned_memory()) return torch::empty({numel}, options);
  auto& pool = BufferPool::instance();
  c10::Storage storage(c10::Storage::use_byte_size_t{}, bytes, pool.allocate(bytes), &pool, /*resizable=*/true);
  return torch::empty({0}, options).set_(storage, 0, {numel}, {1});
}

/// The same before its memory is there: views can be made, values cannot. Its storage says its full size.
inline at::Tensor flat_without_memory(std::int64_t numel, const at::TensorOptions& options) {
  const auto bytes = static_cast<std::size_t>(numel) * options.dtype().itemsize();
  auto tensor = torch::empty({0}, options);
  c10::Allocator* allocator = &BufferPool::instance();
  if (!options.device().is_cpu()) allocator = tensor.storage().allocator();
  c10::Storage storage(c10::Storage::use_byte_size_t{}, bytes, at::DataPtr(nullptr, tensor.device()), allocator, true);
  return tensor.set_(storage, 0, {numel}, {1});
}

}  // namespace sealift::train::detail
