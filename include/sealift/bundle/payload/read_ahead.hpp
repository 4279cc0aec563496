// SPDX-License-Identifier: Apache-2.0
// The chunks that are wanted next, read past the system's cache by a thread while those before them are hashed and
// inflated: past that cache nobody else reads on. Nothing is checked here.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "sealift/bundle/payload/volume_input.hpp"

namespace sealift::bundle {

// Safe from several threads. Can be neither copied nor moved.
class ReadAhead {
 public:
  using File = std::shared_ptr<const VolumeInput>;

  // What was read, or is to be.
  struct Chunk {
    ChunkBuffer bytes;
    std::size_t filled = 0;  // how many of them there are; the rest is for the caller to read
  };

  // Holds at most `max_chunks`.
  explicit ReadAhead(std::size_t max_chunks) : max_chunks_(max_chunks) {}

  // Chunk `index` is these bytes of `file`, and wanted soon. A hint: nothing happens when too many are.
  void want(std::uint64_t index, File file, std::uint64_t offset, std::size_t size) {
    {
      const std::lock_guard lock(guard_);
      if (wanted_.contains(index) || !make_room()) return;
      wanted_.emplace(index, Wanted{.number = ++count_});
      waiting_.push_back({.index = index, .file = std::move(file), .offset = offset, .size = size});
      if (!reader_.joinable()) reader_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
    }
    changed_.notify_all();
  }

  // The chunk, once it was read; nothing when nobody wanted it. Throws what reading it has met. `memory` is used again.
  std::optional<Chunk> take(std::uint64_t index, ChunkBuffer& memory) {
    std::unique_lock lock(guard_);
    changed_.wait(lock, [&] { return !wanted_.contains(index) || wanted_.at(index).done; });
    if (!wanted_.contains(index)) return std::nullopt;
    Wanted wanted = std::move(wanted_.extract(index).mapped());
    if (wanted.failure) std::rethrow_exception(wanted.failure);
    if (memory.capacity() != 0 && idle_.size() + wanted_.size() < max_chunks_) idle_.push_back(std::move(memory));
    return std::move(wanted.chunk);
  }

 private:
  struct Waiting {
    std::uint64_t index;
    File file;
    std::uint64_t offset;
    std::size_t size;
  };
  struct Wanted {
    std::uint64_t number;  // in the order in which they were wanted
    bool done = false;
    Chunk chunk = {};
    std::exception_ptr failure = nullptr;
  };

  // Whether there is room for one more; what was read and not taken goes first, the oldest before the others.
  bool make_room() {
    if (wanted_.size() < max_chunks_) return true;
    auto oldest = wanted_.end();
    for (auto it = wanted_.begin(); it != wanted_.end(); ++it)
      if (it->second.done && (oldest == wanted_.end() || it->second.number < oldest->second.number)) oldest = it;
    if (oldest == wanted_.end()) return false;
    wanted_.erase(oldest);
    return true;
  }

  void work(const std::stop_token& stop) {
    std::unique_lock lock(guard_);
    while (changed_.wait(lock, stop, [&] { return !waiting_.empty(); }) && !stop.stop_requested()) {
      Waiting next = std::move(waiting_.front());
      waiting_.pop_front();
      Chunk chunk;
      if (!idle_.empty()) {
        chunk.bytes = std::move(idle_.back());
        idle_.pop_back();
      }
      lock.unlock();
      std::exception_ptr failure;
      try {
        chunk.bytes.resize(next.size);
        chunk.filled = next.file->read_past_the_cache(next.offset, chunk.bytes);
      } catch (...) {
        failure = std::current_exception();
      }
      next.file.reset();  // before anybody learns of it: a disc cannot be taken out while it is open
      lock.lock();
      Wanted& wanted = wanted_.at(next.index);
      wanted.chunk = std::move(chunk);
      wanted.failure = failure;
      wanted.done = true;
      changed_.notify_all();
    }
  }

  const std::size_t max_chunks_;
  std::mutex guard_;
  std::condition_variable_any changed_;
  std::uint64_t count_ = 0;
  std::map<std::uint64_t, Wanted> wanted_;  // those that wait, that are read, that were
  std::deque<Waiting> waiting_;
  std::vector<ChunkBuffer> idle_;
  std::jthread reader_;  // last: it has ended before the rest goes
};

}  // namespace sealift::bundle
