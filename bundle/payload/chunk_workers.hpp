// SPDX-License-Identifier: Apache-2.0
// Digests and writes chunks on several threads, and reads them where they are parts of a file, while payload_writer
// says which come next. A fixed number of buffers goes round, so memory grows neither with the payload nor with the
// cores. A queue and not a parallel_for: the chunks arrive one by one from a single producer, and nobody knows how
// many.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "bundle/payload/volume_output.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/payload/chunk_buffer.hpp"

namespace sealift::bundle {

// A file that threads read chunks of, and who is told how many bytes each of them was.
struct ChunkFile {
  InputFile file;
  std::function<void(std::uint64_t)> on_read;
};

// What fills a chunk: nobody, when its buffer holds it already, or a file from `offset`.
struct ChunkOrigin {
  std::shared_ptr<const ChunkFile> file = {};
  std::uint64_t offset = 0;
};

// Every member throws what a thread has thrown. Can be neither copied nor moved.
class ChunkWorkers {
 public:
  // Starts the threads; `chunk_size` in bytes.
  ChunkWorkers(std::size_t chunk_size, DigestAlgorithm algorithm);

  // An empty buffer; waits until there is one.
  ChunkBuffer take();
  // Hands over the next chunk, which goes to `offset` of `volume`. Of a file's the buffer only has the size.
  void put(ChunkBuffer buffer, std::shared_ptr<const VolumeOutput> volume, std::uint64_t offset,
           ChunkOrigin origin = {});
  // Waits until every chunk is written, and returns their digests in the order of put().
  const std::vector<Digest>& finish();
  // Drops the digests behind the first `count`; called after finish().
  void forget_after(std::size_t count);
  // Chunk `index` was written again and is another one; called after finish().
  void replace(std::size_t index, const Digest& digest);

 private:
  struct Chunk {
    ChunkBuffer buffer;
    std::shared_ptr<const VolumeOutput> volume;
    std::uint64_t offset;
    ChunkOrigin origin;
    std::size_t index;
  };

  Digest pass_on(Chunk& chunk) const;
  void rethrow() const;
  void work(const std::stop_token& stop);

  DigestAlgorithm algorithm_;
  std::mutex guard_;
  std::condition_variable_any changed_;
  std::vector<ChunkBuffer> idle_;
  std::deque<Chunk> waiting_;
  std::size_t busy_ = 0;
  std::vector<Digest> digests_;
  std::exception_ptr fault_;
  std::vector<std::jthread> threads_;  // last, so that they have ended before the rest is destroyed
};

}  // namespace sealift::bundle
