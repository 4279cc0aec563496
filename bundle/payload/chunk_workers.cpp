// SPDX-License-Identifier: Apache-2.0
#include "bundle/payload/chunk_workers.hpp"

#include <algorithm>
#include <utility>

namespace sealift::bundle {

ChunkWorkers::ChunkWorkers(std::size_t chunk_size, DigestAlgorithm algorithm) : algorithm_(algorithm) {
  // One thread fills the buffers; more than eight would only wait for it.
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
  for (unsigned i = 0; i < threads + 2; ++i) idle_.emplace_back(chunk_size);
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
}

ChunkBuffer ChunkWorkers::take() {
  std::unique_lock lock(guard_);
  changed_.wait(lock, [&] { return !idle_.empty() || fault_; });
  rethrow();
  ChunkBuffer buffer = std::move(idle_.back());
  idle_.pop_back();
  return buffer;
}

void ChunkWorkers::put(ChunkBuffer buffer, std::shared_ptr<const VolumeOutput> volume, std::uint64_t offset) {
  {
    const std::lock_guard lock(guard_);
    rethrow();
    waiting_.push_back({std::move(buffer), std::move(volume), offset, digests_.size()});
    digests_.emplace_back();
  }
  changed_.notify_all();
}

const std::vector<Digest>& ChunkWorkers::finish() {
  std::unique_lock lock(guard_);
  changed_.wait(lock, [&] { return (waiting_.empty() && busy_ == 0) || fault_; });
  rethrow();
  return digests_;
}

void ChunkWorkers::forget_after(std::size_t count) {
  const std::lock_guard lock(guard_);
  digests_.resize(count);
}

void ChunkWorkers::rethrow() const {
  if (fault_) std::rethrow_exception(fault_);
}

// Stops when this object is destroyed, whatever still waits: a caller who wants that written has called finish().
void ChunkWorkers::work(const std::stop_token& stop) {
  std::unique_lock lock(guard_);
  for (;;) {
    if (!changed_.wait(lock, stop, [&] { return !waiting_.empty(); }) || stop.stop_requested()) return;
    Chunk chunk = std::move(waiting_.front());
    waiting_.pop_front();
    ++busy_;
    lock.unlock();
    Digest digest;
    std::exception_ptr fault;
    try {
      chunk.volume->write(chunk.buffer.view(), chunk.offset);
      digest = digest_of(chunk.buffer.view(), algorithm_);
    } catch (...) {
      fault = std::current_exception();
    }
    chunk.volume.reset();
    chunk.buffer.clear();
    lock.lock();
    --busy_;
    if (fault && !fault_) fault_ = fault;
    digests_[chunk.index] = digest;
    idle_.push_back(std::move(chunk.buffer));
    changed_.notify_all();
  }
}

}  // namespace sealift::bundle
