// SPDX-License-Identifier: Apache-2.0
#include "bundle/payload/read_ahead.hpp"

#include <system_error>
#include <utility>

namespace sealift::bundle {

void ReadAhead::want(std::uint64_t index, File file, std::uint64_t offset, std::size_t size) {
  {
    const std::lock_guard lock(guard_);
    ++count_;
    if (wanted_.contains(index) || !has_reader() || !make_room()) return;
    wanted_.emplace(index, Wanted{.number = count_});
    waiting_.push_back({.index = index, .file = std::move(file), .offset = offset, .size = size});
  }
  changed_.notify_all();
}

std::optional<ReadAhead::Chunk> ReadAhead::take(std::uint64_t index, ChunkBuffer& memory) {
  std::unique_lock lock(guard_);
  changed_.wait(lock, [&] { return !wanted_.contains(index) || wanted_.at(index).done; });
  if (!wanted_.contains(index)) return std::nullopt;
  Wanted wanted = std::move(wanted_.extract(index).mapped());
  if (wanted.failure) std::rethrow_exception(wanted.failure);
  if (memory.capacity() != 0 && idle_.size() + wanted_.size() < max_chunks_) idle_.push_back(std::move(memory));
  return std::move(wanted.chunk);
}

// Whether there is a thread that reads ahead, from the first call on. Where the system gives none, nobody may wait for
// what it would have read.
bool ReadAhead::has_reader() {
  if (!reader_.joinable()) try {
      reader_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
    } catch (const std::system_error&) {
    }
  return reader_.joinable();
}

// Whether one more may be held. A chunk that was read long ago and never taken is dropped for it, the oldest first.
bool ReadAhead::make_room() {
  if (wanted_.size() < max_chunks_) return true;
  auto oldest = wanted_.end();
  for (auto it = wanted_.begin(); it != wanted_.end(); ++it)
    if (it->second.done && (oldest == wanted_.end() || it->second.number < oldest->second.number)) oldest = it;
  if (oldest == wanted_.end() || count_ - oldest->second.number <= kPatience) return false;
  wanted_.erase(oldest);
  return true;
}

void ReadAhead::work(const std::stop_token& stop) {
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
    next.file.reset();  // before anybody is told: a disc cannot be taken out while its file is open
    lock.lock();
    Wanted& wanted = wanted_.at(next.index);
    wanted.chunk = std::move(chunk);
    wanted.failure = failure;
    wanted.done = true;
    changed_.notify_all();
  }
}

}  // namespace sealift::bundle
