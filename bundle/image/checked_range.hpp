// SPDX-License-Identifier: Apache-2.0
// A part of a payload for readers that jump: each byte comes from a chunk whose digest was found right in the memory
// from which it is copied. What was read last is kept, within a bound.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "sealift/bundle/payload/payload_reader.hpp"

namespace sealift::bundle {

// Safe from several threads; a chunk that several want at once is read once.
class CheckedRange {
 public:
  // `size` bytes at `offset` of a payload that outlives this. Keeps at most `memory` bytes of chunks, one at least, and
  // beside them one for each thread that reads. With a `patience`, a read that the medium does not answer in that time
  // is an Io; the chunk is kept once it comes, and the destructor waits for it.
  CheckedRange(const PayloadReader& payload, std::uint64_t offset, std::uint64_t size, std::uint64_t memory,
               std::chrono::milliseconds patience = std::chrono::milliseconds(0));
  CheckedRange(const CheckedRange&) = delete;
  CheckedRange& operator=(const CheckedRange&) = delete;
  ~CheckedRange();

  std::uint64_t size() const { return size_; }
  // Fills `out` from `offset`, which must lie inside with all that is wanted. Throws what PayloadReader::chunk throws;
  // a chunk that was bad is read again when it is wanted again.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  // Chunks that were read, and read again.
  std::uint64_t chunks_read() const;
  // The payload's numbers of chunks that were read and right, as they were read first.
  std::vector<std::uint64_t> chunks_in_order() const;

 private:
  using Chunk = std::shared_ptr<const ChunkBuffer>;
  struct Kept {
    Chunk bytes;                 // nullptr while somebody reads them
    std::exception_ptr failure;  // of the read, for all who wait for it
    std::uint64_t used = 0;
  };

  Chunk chunk(std::uint64_t index) const;
  void begin_reading(std::uint64_t index) const;
  void read_chunk(std::uint64_t index) const;
  [[noreturn]] void refuse_silence(std::uint64_t index) const;
  void forget_oldest() const;

  const PayloadReader& payload_;
  const std::uint64_t offset_, size_, memory_;
  const std::chrono::milliseconds patience_;
  mutable std::mutex guard_;
  mutable std::condition_variable changed_;
  mutable std::map<std::uint64_t, std::shared_ptr<Kept>> kept_;
  mutable unsigned reading_ = 0;     // threads that wait for the medium
  mutable std::uint64_t bytes_ = 0;  // that are kept
  mutable std::uint64_t clock_ = 0;
  mutable std::uint64_t reads_ = 0;
  mutable std::vector<std::uint64_t> order_;
  mutable std::set<std::uint64_t> known_;  // what is in order_
};

}  // namespace sealift::bundle
