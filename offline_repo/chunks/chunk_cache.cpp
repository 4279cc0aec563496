// SPDX-License-Identifier: Apache-2.0
// Hashing and freeing happen outside of the lock. A place is made before its chunk is read: whoever finds it waits.
#include "offline_repo/chunks/chunk_cache.hpp"

#include <algorithm>

namespace sealift::offline_repo {

ChunkCache::Key ChunkCache::key_of(const bundle::PayloadReader& payload, std::uint64_t index) {
  return {payload.payload().digest, payload.digests().at(static_cast<std::size_t>(index))};
}

// Under the lock: the place's chunk, which is now the one that was used last.
ChunkCache::Chunk ChunkCache::used(Place& place) {
  uses_.splice(uses_.begin(), uses_, place.use);
  return place.chunk;
}

ChunkCache::Chunk ChunkCache::find(const bundle::PayloadReader& payload, std::uint64_t index) {
  const Key key = key_of(payload, index);
  const std::lock_guard lock(guard_);
  const auto found = places_.find(key);
  return found != places_.end() && found->second.chunk ? used(found->second) : nullptr;
}

ChunkCache::Chunk ChunkCache::take(const bundle::PayloadReader& payload, std::uint64_t index, bool goes_on,
                                   Later later) {
  const Key key = key_of(payload, index);
  {
    const std::lock_guard lock(guard_);
    if (const auto found = places_.find(key); found != places_.end()) {
      Place& place = found->second;
      if (!place.chunk) return place.waiting.push_back(std::move(later)), nullptr;
      return used(place);
    }
    std::list<Key> use{key};
    places_.try_emplace(key, Place{.chunk = nullptr, .waiting = {}, .use = use.begin()});
    uses_.splice(uses_.begin(), use);
  }
  Chunk chunk;
  std::exception_ptr fault;
  try {
    if (goes_on) payload.will_need(index + 1);
    chunk = checked(payload, index);
  } catch (...) {
    fault = std::current_exception();
  }
  for (const Later& waiting : settle(key, chunk)) waiting(chunk, fault);
  if (fault) std::rethrow_exception(fault);
  return chunk;
}

ChunkCache::Chunk ChunkCache::checked(const bundle::PayloadReader& payload, std::uint64_t index) {
  bundle::ChunkBuffer memory;
  {
    const std::lock_guard lock(guard_);
    ++counts_.checked;
    if (!spare_.empty()) memory = std::move(spare_.back()), spare_.pop_back();
  }
  memory = payload.chunk(index, std::move(memory));
  Chunk chunk = std::make_shared<CheckedChunk>(memory.view());
  const std::lock_guard lock(guard_);
  spare_.push_back(std::move(memory));
  return chunk;
}

// Puts the chunk into its place, or takes the place away where there is none; returns who waited for it.
std::vector<ChunkCache::Later> ChunkCache::settle(const Key& key, const Chunk& chunk) {
  std::vector<Chunk> evicted;  // ends after the lock
  const std::lock_guard lock(guard_);
  const auto found = places_.find(key);
  std::vector<Later> waiting = std::move(found->second.waiting);
  if (!chunk) {
    ++counts_.failed;
    uses_.erase(found->second.use);
    places_.erase(found);
    return waiting;
  }
  found->second.chunk = chunk;
  counts_.bytes += chunk->memory();
  files_ += chunk->in_file() ? 1 : 0;
  evicted = make_room();
  counts_.most = std::max(counts_.most, counts_.bytes);
  return waiting;
}

// Takes out those that were used longest ago. Under the lock nobody can begin to hold one.
std::vector<ChunkCache::Chunk> ChunkCache::make_room() {
  std::vector<Chunk> evicted;
  for (auto oldest = uses_.end(); oldest != uses_.begin();) {
    if (counts_.bytes <= max_bytes_ && files_ <= max_files_) break;
    const auto found = places_.find(*--oldest);
    Chunk& chunk = found->second.chunk;
    if (!chunk || chunk.use_count() > 1) continue;
    counts_.bytes -= chunk->memory();
    files_ -= chunk->in_file() ? 1 : 0;
    evicted.push_back(std::move(chunk));
    places_.erase(found);
    oldest = uses_.erase(oldest);
  }
  return evicted;
}

CacheCounts ChunkCache::counts() const {
  const std::lock_guard lock(guard_);
  return counts_;
}

}  // namespace sealift::offline_repo
