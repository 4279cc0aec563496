// SPDX-License-Identifier: Apache-2.0
// Chunks on their way into volumes: digested and written by several threads while payload_writer fills the next one.
// A fixed number of buffers goes round, so memory does not grow with the payload. They are written past the system's
// cache: a bundle is read next on another machine, and copying gigabytes into that cache costs more than hashing them.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/payload/chunk_buffer.hpp"

namespace sealift::bundle {

// A new file written at offsets, by several threads at once; nothing that exists is overwritten.
class VolumeFile {
 public:
  enum class Opening { New, Again };  // Again: to go on with what this program has written

  explicit VolumeFile(std::filesystem::path path, Opening opening = Opening::New) : path_(std::move(path)) {
    const int flags = opening == Opening::New ? O_CREAT | O_EXCL : 0;
    fd_ = Descriptor(::open(path_.c_str(), O_WRONLY | flags | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!fd_) throw_errno("a file cannot be created", path_);
    // Not every file system can; then the other descriptor does all.
    direct_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC | O_NOFOLLOW));
  }

  void write(ByteView bytes, std::uint64_t offset) const {
    bool direct = direct_ && bytes.size() % ChunkBuffer::kAlignment == 0 && offset % ChunkBuffer::kAlignment == 0;
    while (!bytes.empty()) {
      const int fd = direct ? direct_.get() : fd_.get();
      const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EINVAL && std::exchange(direct, false)) continue;
      if (count < 0) throw_errno("a file cannot be written", path_);
      bytes = bytes.subspan(static_cast<std::size_t>(count));
      offset += static_cast<std::uint64_t>(count);
      direct = direct && bytes.size() % ChunkBuffer::kAlignment == 0;  // what is left of a short write may be odd
    }
  }
  // Durable once this returns.
  void sync() const {
    if (::fsync(fd_.get()) != 0) throw_errno("a file cannot be synced", path_);
  }

 private:
  std::filesystem::path path_;
  Descriptor fd_;
  Descriptor direct_;
};

// Digests and writes what it is given. Can be neither copied nor moved.
class ChunkWorkers {
 public:
  ChunkWorkers(std::size_t chunk_size, DigestAlgorithm algorithm) : algorithm_(algorithm) {
    // Whoever fills the buffers hashes too, and more than four threads would only wait for it.
    const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1U, 4U);
    for (unsigned i = 0; i < threads + 2; ++i) idle_.emplace_back(chunk_size);
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  }
  // An empty buffer, once there is one. Throws what a thread has met, as the other two do.
  ChunkBuffer take() {
    std::unique_lock lock(guard_);
    changed_.wait(lock, [&] { return !idle_.empty() || fault_; });
    rethrow();
    ChunkBuffer buffer = std::move(idle_.back());
    idle_.pop_back();
    return buffer;
  }
  // The next chunk, which goes to `offset` of `volume`.
  void put(ChunkBuffer buffer, std::shared_ptr<const VolumeFile> volume, std::uint64_t offset) {
    {
      const std::lock_guard lock(guard_);
      rethrow();
      waiting_.push_back({std::move(buffer), std::move(volume), offset, digests_.size()});
      digests_.emplace_back();
    }
    changed_.notify_all();
  }
  // Every chunk is written, and its digest known, once this returns: in the order in which they were put.
  const std::vector<Digest>& finish() {
    std::unique_lock lock(guard_);
    changed_.wait(lock, [&] { return (waiting_.empty() && busy_ == 0) || fault_; });
    rethrow();
    return digests_;
  }
  // Drops the digests behind the first `count`; called after finish().
  void forget_after(std::size_t count) {
    const std::lock_guard lock(guard_);
    digests_.resize(count);
  }

 private:
  struct Chunk {
    ChunkBuffer buffer;
    std::shared_ptr<const VolumeFile> volume;
    std::uint64_t offset;
    std::size_t index;
  };

  void rethrow() const {
    if (fault_) std::rethrow_exception(fault_);
  }

  // Stops when this object goes; whoever wants what is still waiting has called finish().
  void work(const std::stop_token& stop) {
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

  DigestAlgorithm algorithm_;
  std::mutex guard_;
  std::condition_variable_any changed_;
  std::vector<ChunkBuffer> idle_;
  std::deque<Chunk> waiting_;
  std::size_t busy_ = 0;
  std::vector<Digest> digests_;
  std::exception_ptr fault_;
  std::vector<std::jthread> threads_;  // last: joined before the rest goes
};

}  // namespace sealift::bundle
