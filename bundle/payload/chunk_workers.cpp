// SPDX-License-Identifier: Apache-2.0
#include "bundle/payload/chunk_workers.hpp"

#include <algorithm>
#include <utility>

#include "sealift/bundle/core/parallel_for.hpp"

namespace sealift::bundle {

namespace {

constexpr std::size_t kMemory = std::size_t{192} << 20;  // bytes of all buffers, however many cores there are
constexpr std::size_t kMostBuffers = 48;
constexpr std::size_t kSpare = 2;  // buffers that wait while every thread has one

// Two more than cores: a thread that waits for the disk does not digest.
std::size_t thread_count(std::size_t chunk_size) {
  const std::size_t buffers = std::min(kMostBuffers, kMemory / chunk_size);
  return std::min<std::size_t>(std::max(1U, std::thread::hardware_concurrency()) + 2, buffers - kSpare);
}

}  // namespace

ChunkWorkers::ChunkWorkers(std::size_t chunk_size, DigestAlgorithm algorithm) : algorithm_(algorithm) {
  const std::size_t threads = thread_count(chunk_size);
  for (std::size_t i = 0; i < threads + kSpare; ++i) idle_.emplace_back(chunk_size);
  const auto take_turns = [this](const std::stop_token& stop) { work(stop); };
  threads_.emplace_back(take_turns);  // one there must be
  start_threads(threads_, threads, take_turns);
}

ChunkBuffer ChunkWorkers::take() {
  std::unique_lock lock(guard_);
  changed_.wait(lock, [&] { return !idle_.empty() || fault_; });
  rethrow();
  ChunkBuffer buffer = std::move(idle_.back());
  idle_.pop_back();
  return buffer;
}

void ChunkWorkers::put(ChunkBuffer buffer, std::shared_ptr<const VolumeOutput> volume, std::uint64_t offset,
                       ChunkOrigin origin) {
  {
    const std::lock_guard lock(guard_);
    rethrow();
    waiting_.push_back({std::move(buffer), std::move(volume), offset, std::move(origin), digests_.size()});
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

void ChunkWorkers::replace(std::size_t index, const Digest& digest) {
  const std::lock_guard lock(guard_);
  digests_.at(index) = digest;
}

void ChunkWorkers::rethrow() const {
  if (fault_) std::rethrow_exception(fault_);
}

// The digest is of the memory that was written, wherever it came from.
Digest ChunkWorkers::pass_on(Chunk& chunk) const {
  if (const ChunkFile* from = chunk.origin.file.get()) {
    from->file.read_exactly(chunk.origin.offset, chunk.buffer.all());
    if (from->on_read) from->on_read(chunk.buffer.size());
  }
  chunk.volume->write(chunk.buffer.view(), chunk.offset);
  return digest_of(chunk.buffer.view(), algorithm_);
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
      digest = pass_on(chunk);
    } catch (...) {
      fault = std::current_exception();
    }
    chunk.volume.reset();
    chunk.origin.file.reset();
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
