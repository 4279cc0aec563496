// SPDX-License-Identifier: Apache-2.0
// Reads the chunks that will be wanted next, on a thread of its own, while the ones before them are hashed and
// inflated: the system does not read ahead for reads that bypass its page cache. Nothing is checked here. A queue and
// not a parallel_for: which chunks are wanted becomes known one by one, while others are being taken.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "bundle/payload/volume_input.hpp"
#include "sealift/bundle/payload/chunk_buffer.hpp"

namespace sealift::bundle {

// Safe from several threads. Can be neither copied nor moved.
class ReadAhead {
 public:
  using File = std::shared_ptr<const VolumeInput>;

  // A chunk as far as it could be read past the cache.
  struct Chunk {
    ChunkBuffer bytes;
    std::size_t filled = 0;  // bytes that were read; the caller reads the rest
  };

  // Holds at most `max_chunks`.
  explicit ReadAhead(std::size_t max_chunks) : max_chunks_(max_chunks) {}

  // More than there are readers at a time: what one of them is about to take must not be read again.
  static constexpr std::uint64_t kPatience = 64;

  // Announces that chunk `index`, `size` bytes at `offset` of `file`, is wanted soon. A hint: ignored when too many
  // are. A chunk that nobody has taken while kPatience others were announced makes room for another.
  void want(std::uint64_t index, File file, std::uint64_t offset, std::size_t size);

  // Waits for the chunk and returns it; nothing when it was not announced. Throws what reading it threw. The memory of
  // `memory` may be kept for a later chunk.
  std::optional<Chunk> take(std::uint64_t index, ChunkBuffer& memory);

 private:
  struct Waiting {
    std::uint64_t index;
    File file;
    std::uint64_t offset;
    std::size_t size;
  };
  struct Wanted {
    std::uint64_t number;  // in the order in which they were announced
    bool done = false;
    Chunk chunk = {};
    std::exception_ptr failure = nullptr;
  };

  bool has_reader();
  bool make_room();
  void work(const std::stop_token& stop);

  const std::size_t max_chunks_;
  std::mutex guard_;
  std::condition_variable_any changed_;
  std::uint64_t count_ = 0;
  std::map<std::uint64_t, Wanted> wanted_;  // waiting, being read, or read and not yet taken
  std::deque<Waiting> waiting_;
  std::vector<ChunkBuffer> idle_;
  std::jthread reader_;  // last, so that it has ended before the rest is destroyed
};

}  // namespace sealift::bundle
