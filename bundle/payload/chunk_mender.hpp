// SPDX-License-Identifier: Apache-2.0
// Chunks that no volume has right, mended in memory for readers of the payload, so that a scratch does not stop an
// installation. It reads a chunk's whole group for it, up to a gigabyte; so only as much as a scratch damages is mended
// here, and the rest is for `sealift-install mend`, which keeps what it rebuilds on a disk.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "bundle/payload/surviving_payload.hpp"

namespace sealift::bundle {

// How much is mended in memory, in bytes.
struct MendingLimits {
  std::uint64_t read = std::uint64_t{64} << 30;  // of groups, for all chunks together: minutes from a disk
  std::uint64_t kept = std::uint64_t{64} << 20;  // rebuilt and not yet wanted
};

// Safe from several threads; they mend one after the other. Memory while it mends: 192 MiB and two chunks; afterwards
// 64 MiB at most.
class ChunkMender {
 public:
  // For a payload with recovery data. Opens nothing yet.
  ChunkMender(const Payload& payload, const std::vector<Digest>& chunks, std::vector<std::filesystem::path> folders,
              MendingLimits limits = {});

  // Whether all that files lack by their length can be mended here; false also where it is too much.
  bool mends_what_is_cut_off();
  // Fills `memory` with chunk `index` as any copy has it that is right there, also a copy of another size; false when
  // none has.
  bool read(std::uint64_t index, ChunkBuffer& memory);
  // Fills `memory` with chunk `index`, which none has, from recovery data. Returns why not, if not; throws Digest when
  // that gives other bytes than were signed.
  std::optional<Error> mend(std::uint64_t index, ChunkBuffer& memory);
  // Closes all files until the next call: a disc with an open file cannot be taken out.
  void close();
  // Looks in these from the next call on.
  void look_in(std::vector<std::filesystem::path> folders);

 private:
  SurvivingPayload& opened();
  void keep(std::uint64_t index, ByteView bytes);

  std::mutex guard_;
  const Payload& payload_;
  const std::vector<Digest>& chunks_;
  std::vector<std::filesystem::path> folders_;
  const MendingLimits limits_;
  std::optional<SurvivingPayload> files_;
  std::uint64_t read_ = 0;
  std::map<std::uint64_t, Bytes> rebuilt_;
  std::deque<std::uint64_t> oldest_first_;
  std::uint64_t rebuilt_bytes_ = 0;
};

}  // namespace sealift::bundle
