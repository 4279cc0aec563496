// SPDX-License-Identifier: Apache-2.0
// The checked chunks that all connections share: each is read and hashed once for everybody who wants it, and kept
// while there is room. A chunk that fails its digest is never in here.
// What was used longest ago goes first, but a file that is longer than half of the cache takes no more than half of it
// from the others. Of its half one part is for present downloads, the other keeps what it has for the next
// download: else one download would empty the cache, for nobody.
// Chunks are named by their signed digests, so what two bundles have in common is kept once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "offline_repo/chunks/checked_chunk.hpp"
#include "sealift/bundle/payload/payload_reader.hpp"

namespace sealift::offline_repo {

// What a cache has done and holds.
struct CacheCounts {
  std::uint64_t checked = 0;  // chunks that were read and hashed, failed ones among them
  std::uint64_t failed = 0;   // of those
  std::uint64_t bytes = 0;    // of memory now
  std::uint64_t most = 0;     // of memory at any time
};

// Safe from several threads.
class ChunkCache {
 public:
  using Chunk = std::shared_ptr<const CheckedChunk>;
  // A chunk, or why there is none.
  using Later = std::function<void(const Chunk&, const std::exception_ptr&)>;

  // Keeps at most `bytes` of memory in at most `files` memory files. Chunks that somebody holds are not evicted, so it
  // may have more while they are held.
  ChunkCache(std::uint64_t bytes, std::size_t files) : max_bytes_(bytes), max_files_(files) {}

  // Chunk `index` of `payload` where it is kept; null where somebody has to read it.
  Chunk find(const bundle::PayloadReader& payload, std::uint64_t index);
  // The same chunk, read and hashed on this thread where nobody has it. While another thread is at that,
  // null: that thread then calls `later` once. `goes_on`: the next chunk will be wanted too; `file`: bytes of the file
  // that it is wanted for, all of them. Throws what PayloadReader::chunk throws.
  Chunk take(const bundle::PayloadReader& payload, std::uint64_t index, bool goes_on, Later later,
             std::uint64_t file = 0);

  CacheCounts counts() const;

 private:
  using Key = std::pair<bundle::DigestAlgorithm, bundle::Digest>;
  struct Place {
    Chunk chunk;                       // null while it is read
    std::vector<Later> waiting;        // for it to be read
    std::list<Key>::iterator use;      // in its share's list
    bool of_long = false;              // it was read for a file that is longer than half of the cache
    std::uint64_t used = 0, read = 0;  // clocks at its last use
  };
  using Places = std::map<Key, Place>;
  // Of the files that are long, or of all others.
  struct Share {
    std::list<Key> uses;  // the latest first
    std::uint64_t bytes = 0;
    std::size_t files = 0;
  };

  static Key key_of(const bundle::PayloadReader& payload, std::uint64_t index);
  Chunk used(Place& place);
  Chunk checked(const bundle::PayloadReader& payload, std::uint64_t index);
  std::vector<Later> settle(const Key& key, const Chunk& chunk, std::uint64_t chunks_of_file);
  std::vector<Chunk> make_room(const Key& fresh, std::uint64_t chunks_of_file);
  Places::iterator victim(const Key& fresh, std::uint64_t chunks_of_file);
  Places::iterator oldest(const Share& share);
  Places::iterator behind_the_latest(const Key& fresh);
  Share& share_of(const Place& place) { return place.of_long ? long_ : short_; }

  const std::uint64_t max_bytes_;
  const std::size_t max_files_;
  mutable std::mutex guard_;  // of what follows
  Places places_;
  Share short_, long_;
  std::uint64_t uses_ = 0, reads_ = 0;      // clocks
  std::vector<bundle::ChunkBuffer> spare_;  // memory to read into, at most one a thread
  CacheCounts counts_;
};

}  // namespace sealift::offline_repo
