// SPDX-License-Identifier: Apache-2.0
// The bodies of buffer_pool.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/flat/buffer_pool.hpp>

namespace sealift::train {

namespace detail {

SEALIFT_BODY BufferPool& BufferPool::instance() {
  static auto* pool = new BufferPool;
  return *pool;
}

SEALIFT_BODY at::DataPtr BufferPool::allocate(std::size_t bytes) {
  if (bytes == 0) return {nullptr, at::kCPU};
  auto block = std::make_unique<Block>();
  {
    const std::lock_guard lock(guard_);
    out_ += bytes;
    peak_ = std::max(peak_, out_);
    const auto fits = std::find_if(kept_.begin(), kept_.end(), [&](const auto& kept) { return kept->bytes == bytes; });
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

SEALIFT_BODY std::size_t BufferPool::kept_bytes() const {
  const std::lock_guard lock(guard_);
  return kept_bytes_;
}

SEALIFT_BODY void BufferPool::release_kept() {
  const std::lock_guard lock(guard_);
  peak_ = out_;
  trim();
}

SEALIFT_BODY BufferPool::User::User() {
  auto& pool = instance();
  const std::lock_guard lock(pool.guard_);
  if (pool.users_++ == 0) pool.peak_ = pool.out_;  // what was out before counts no more
}

SEALIFT_BODY BufferPool::User::~User() {
  auto& pool = instance();
  bool last = false;
  {
    const std::lock_guard lock(pool.guard_);
    last = --pool.users_ == 0;
  }
  if (last) pool.release_kept();
}

SEALIFT_BODY void BufferPool::poison_returned(bool on) {
  const std::lock_guard lock(guard_);
  poison_ = on;
}

SEALIFT_BODY void BufferPool::give_back(void* context) {
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

SEALIFT_BODY void BufferPool::trim() {
  while (!kept_.empty() && out_ + kept_bytes_ > peak_) {
    kept_bytes_ -= kept_.front()->bytes;
    kept_.pop_front();
  }
}

SEALIFT_BODY UseBuffers::UseBuffers(const std::shared_ptr<SteadyBuffers>& buffers)
    : before_(std::exchange(current(), buffers.get())) {}

SEALIFT_BODY SteadyBuffers*& UseBuffers::current() {
  thread_local SteadyBuffers* buffers = nullptr;
  return buffers;
}

SEALIFT_BODY at::Tensor flat_buffer(std::int64_t numel, const at::TensorOptions& options) {
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

SEALIFT_BODY at::Tensor flat_without_memory(std::int64_t numel, const at::TensorOptions& options) {
  const auto bytes = static_cast<std::size_t>(numel) * options.dtype().itemsize();
  auto tensor = torch::empty({0}, options);
  c10::Allocator* allocator = &BufferPool::instance();
  if (!options.device().is_cpu()) allocator = tensor.storage().allocator();
  c10::Storage storage(c10::Storage::use_byte_size_t{}, bytes, at::DataPtr(nullptr, tensor.device()), allocator, true);
  return tensor.set_(storage, 0, {numel}, {1});
}

}  // namespace detail

}  // namespace sealift::train
