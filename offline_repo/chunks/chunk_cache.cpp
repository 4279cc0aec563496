// SPDX-License-Identifier: Apache-2.0
// Hashing and freeing happen outside of the lock. A place is made before its chunk is read: others who find it wait.
#include "offline_repo/chunks/chunk_cache.hpp"

#include <algorithm>

namespace sealift::offline_repo {

ChunkCache::Key ChunkCache::key_of(const bundle::PayloadReader& payload, std::uint64_t index) {
  return {payload.payload().digest, payload.digests().at(static_cast<std::size_t>(index))};
}

// Under the lock: the place's chunk, which is now the most recently used one.
ChunkCache::Chunk ChunkCache::used(Place& place) {
  std::list<Key>& uses = share_of(place).uses;
  uses.splice(uses.begin(), uses, place.use);
  place.used = ++uses_, place.read = reads_;
  return place.chunk;
}

ChunkCache::Chunk ChunkCache::find(const bundle::PayloadReader& payload, std::uint64_t index) {
  const Key key = key_of(payload, index);
  const std::lock_guard lock(guard_);
  const auto found = places_.find(key);
  return found != places_.end() && found->second.chunk ? used(found->second) : nullptr;
}

ChunkCache::Chunk ChunkCache::take(const bundle::PayloadReader& payload, std::uint64_t index, bool goes_on, Later later,
                                   std::uint64_t file) {
  const Key key = key_of(payload, index);
  {
    const std::lock_guard lock(guard_);
    if (const auto found = places_.find(key); found != places_.end()) {
      Place& place = found->second;
      if (!place.chunk) return place.waiting.push_back(std::move(later)), nullptr;
      return used(place);
    }
    Share& share = file > max_bytes_ / 2 ? long_ : short_;
    std::list<Key> use{key};
    places_.try_emplace(key, Place{.chunk = nullptr, .waiting = {}, .use = use.begin(), .of_long = &share == &long_});
    share.uses.splice(share.uses.begin(), use);
  }
  Chunk chunk;
  std::exception_ptr fault;
  try {
    if (goes_on) payload.will_need(index + 1);
    chunk = checked(payload, index);
  } catch (...) {
    fault = std::current_exception();
  }
  for (const Later& waiting : settle(key, chunk, file / payload.payload().chunk_size + 1)) waiting(chunk, fault);
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
std::vector<ChunkCache::Later> ChunkCache::settle(const Key& key, const Chunk& chunk, std::uint64_t chunks_of_file) {
  std::vector<Chunk> evicted;  // ends after the lock
  const std::lock_guard lock(guard_);
  const auto found = places_.find(key);
  Place& place = found->second;
  Share& share = share_of(place);
  std::vector<Later> waiting = std::move(place.waiting);
  if (!chunk) {
    ++counts_.failed;
    share.uses.erase(place.use);
    places_.erase(found);
    return waiting;
  }
  place.chunk = chunk;
  ++reads_;
  used(place);
  share.bytes += chunk->memory();
  share.files += chunk->in_file() ? 1 : 0;
  evicted = make_room(key, chunks_of_file);
  counts_.bytes = short_.bytes + long_.bytes;
  counts_.most = std::max(counts_.most, counts_.bytes);
  return waiting;
}

// Under the lock nobody can begin to hold one.
std::vector<ChunkCache::Chunk> ChunkCache::make_room(const Key& fresh, std::uint64_t chunks_of_file) {
  std::vector<Chunk> evicted;
  while (short_.bytes + long_.bytes > max_bytes_ || short_.files + long_.files > max_files_) {
    const auto found = victim(fresh, chunks_of_file);
    if (found == places_.end()) break;
    Share& share = share_of(found->second);
    Chunk& chunk = found->second.chunk;
    share.bytes -= chunk->memory();
    share.files -= chunk->in_file() ? 1 : 0;
    evicted.push_back(std::move(chunk));
    share.uses.erase(found->second.use);
    places_.erase(found);
  }
  return evicted;
}

// The least recently used one. While a long file has its half, one of its latest, except the ones that present
// downloads are about to want: what it had before is then there at the next download. Long files that nobody has asked
// for meanwhile make room for it.
ChunkCache::Places::iterator ChunkCache::victim(const Key& fresh, std::uint64_t chunks_of_file) {
  const auto of_long = oldest(long_), of_short = oldest(short_);
  const bool has_half = long_.bytes > max_bytes_ / 2 || long_.files > max_files_ / 2;
  if (has_half && places_.at(fresh).of_long && of_long != places_.end()) {
    if (reads_ - of_long->second.read > 2 * chunks_of_file) return of_long;
    if (const auto last = behind_the_latest(fresh); last != places_.end()) return last;
  }
  if (of_long == places_.end() || of_short == places_.end()) return of_long == places_.end() ? of_short : of_long;
  return of_long->second.used < of_short->second.used ? of_long : of_short;
}

// That nobody holds; the end where there is none.
ChunkCache::Places::iterator ChunkCache::oldest(const Share& share) {
  for (auto use = share.uses.rbegin(); use != share.uses.rend(); ++use)
    if (const auto found = places_.find(*use); found->second.chunk && found->second.chunk.use_count() == 1)
      return found;
  return places_.end();
}

// The latest of the long files' chunks that nobody holds, behind a half of what they may have.
ChunkCache::Places::iterator ChunkCache::behind_the_latest(const Key& fresh) {
  std::uint64_t bytes = 0;
  std::size_t files = 0;
  for (const Key& key : long_.uses) {
    const auto found = places_.find(key);
    const Chunk& chunk = found->second.chunk;
    if (!chunk) continue;
    const bool is_latest = bytes < max_bytes_ / 4 && files < max_files_ / 4;
    bytes += chunk->memory(), files += chunk->in_file() ? 1 : 0;
    if (!is_latest && key != fresh && chunk.use_count() == 1) return found;
  }
  return places_.end();
}

CacheCounts ChunkCache::counts() const {
  const std::lock_guard lock(guard_);
  return counts_;
}

}  // namespace sealift::offline_repo
