// SPDX-License-Identifier: Apache-2.0
// The payload of a verified bundle whose medium is damaged: what of it is still right, wherever a copy lies, and what
// recovery data gives back. Every byte that is handed out has its signed digest, rebuilt or not.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sealift/bundle/core/bytes.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/payload/chunk_buffer.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::bundle {

// What a look at all files found. Recovery files that are not there are no fault: a site may leave them at home.
struct Damage {
  std::uint64_t chunks = 0;      // of the payload
  std::uint64_t bad_chunks = 0;  // of those
  std::uint64_t bad_bytes = 0;   // in them
  bool has_recovery = false;     // as the manifest says; without it the next ones are 0
  std::uint64_t groups = 0;
  std::uint64_t parity = 0;              // how many lost pieces of a group can be mended at best
  std::uint64_t recovery_chunks = 0;     // in all
  std::uint64_t recovery_there = 0;      // of those, right on some medium
  std::uint64_t lost_groups = 0;         // that have lost more than their recovery chunks mend
  std::uint64_t missing_pieces = 0;      // as many more are needed, of all those groups together
  std::vector<std::string> bad_volumes;  // those with a fault, also where another copy has what they lack
  std::vector<Error> faults;             // of volumes, chunks, the list, recovery files and chunks; in this order

  bool mendable() const { return lost_groups == 0; }
  // "3 of 700 chunks are lost or damaged, and recovery data mends them …"; empty: every volume is whole.
  std::string verdict() const;
};

class DamagedPayload {
 public:
  // Looks for volumes and recovery files in these folders, and for their list in the bundle's and in these.
  DamagedPayload(const VerifiedBundle& bundle, std::vector<std::filesystem::path> folders);
  DamagedPayload(const DamagedPayload&) = delete;
  DamagedPayload& operator=(const DamagedPayload&) = delete;
  ~DamagedPayload();

  // Bytes that survey() reads: volumes, and the recovery files that are there.
  std::uint64_t bytes_to_survey() const;
  // Reads every chunk and recovery chunk once, and remembers which are lost. `progress` gets bytes, from any thread.
  // Memory: one chunk a thread, and no more threads than chunks in 160 MiB.
  Damage survey(unsigned threads, const std::function<void(std::uint64_t)>& progress = {});

  // Both after survey(), by one thread. Chunk `index` as some medium has it; false when none has it right, or had not.
  bool read(std::uint64_t index, ChunkBuffer& memory);
  // Gives `sink` each lost chunk of the group that chunk `index` is of, each equal to what was signed. Throws Digest
  // when too much of the group is lost, or when what comes out is not what was signed. Memory: 128 MiB and one chunk.
  void rebuild(std::uint64_t index, const std::function<void(std::uint64_t chunk, ByteView bytes)>& sink);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sealift::bundle
