// SPDX-License-Identifier: Apache-2.0
// What of a payload is still right, wherever a copy lies, and what recovery data gives back of the rest. A piece is
// lost when one of its chunks is; a group's lost pieces come from as many others and recovery chunks as it has pieces.
// What turns out to be lost only then is remembered, and the group is tried again without it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bundle/payload/reed_solomon.hpp"
#include "bundle/payload/surviving_files.hpp"
#include "sealift/bundle/manifest/recovery_layout.hpp"
#include "sealift/bundle/payload/chunk_buffer.hpp"

namespace sealift::bundle {

// Its files stay open while it lives. What reads is safe from several threads; what remembers losses is for one.
class SurvivingPayload {
 public:
  // Gets each lost chunk of a group, by its number.
  using LostChunks = std::function<void(std::uint64_t chunk, ByteView bytes)>;

  // `chunks` are the signed digests. Looks in these folders for volumes, recovery files and their list. Lost is at
  // first what no file is long enough for.
  SurvivingPayload(const Payload& payload, std::vector<Digest> chunks,
                   const std::vector<std::filesystem::path>& folders);

  const Payload& payload() const { return payload_; }
  const ChunkLayout& chunks() const { return chunks_; }
  const RecoveryLayout& layout() const { return layout_; }
  const SurvivingFiles& volumes() const { return volumes_; }
  const SurvivingFiles& recovery() const { return recovery_; }

  // Whether there is a recovery file, or something in the place of one.
  bool has_recovery_file() const;
  bool has_list() const { return !recovery_digests_.empty(); }
  // Why there is no list of recovery chunks.
  const std::optional<Error>& list_fault() const { return list_fault_; }

  SignedRange place(std::uint64_t chunk) const;
  // For a recovery chunk; only with a list.
  SignedRange recovery_place(std::uint64_t chunk) const;

  // The bytes as some copy has them; otherwise what is wrong. See SurvivingFiles::read.
  std::optional<Error> read(std::uint64_t chunk, ChunkBuffer& memory,
                            std::optional<Error>* passed_over = nullptr) const;
  std::optional<Error> read_recovery(std::uint64_t chunk, ChunkBuffer& memory) const;

  bool is_lost(std::uint64_t chunk) const { return lost_[static_cast<std::size_t>(chunk)] != 0; }
  void set_lost(std::uint64_t chunk, bool lost) { lost_[static_cast<std::size_t>(chunk)] = lost; }
  void set_recovery_lost(std::uint64_t chunk, bool lost) { lost_recovery_[static_cast<std::size_t>(chunk)] = lost; }
  // How many pieces of the group are lost beyond its recovery chunks that are not.
  std::uint64_t missing_of(std::uint64_t group) const;

  // Gives `sink` each lost chunk of the group that chunk `index` is of, each equal to what was signed. Returns why not
  // when too much of the group is lost; throws Digest when what comes out is not what was signed. Memory: 128 MiB and
  // one chunk. Reads the group once for each time that something more turns out to be lost.
  std::optional<Error> rebuild(std::uint64_t index, const LostChunks& sink);

 private:
  void find_list(const std::vector<std::filesystem::path>& folders);
  bool is_piece_lost(std::uint64_t piece) const;
  std::vector<std::uint64_t> lost_of(std::uint64_t group) const;
  std::vector<std::uint64_t> help_of(std::uint64_t group) const;
  bool add_piece(PieceSums* sums, std::uint64_t number, std::uint64_t piece, ChunkBuffer& memory);
  bool add_recovery(PieceSums* sums, std::uint64_t number, std::uint64_t chunk, ChunkBuffer& memory);
  std::optional<PieceSums> sums_of(std::uint64_t group, const std::vector<std::uint64_t>& lost_positions);
  void hand_out(std::uint64_t piece, ByteView bytes, const LostChunks& sink) const;

  const Payload payload_;
  const ChunkLayout chunks_;
  const std::vector<Digest> digests_;
  const RecoveryLayout layout_;
  const SurvivingFiles volumes_;
  const SurvivingFiles recovery_;
  const std::vector<std::uint64_t> volume_ends_;
  const std::vector<std::uint64_t> recovery_ends_;
  std::vector<Digest> recovery_digests_ = {};  // empty: no right list was found
  std::optional<Error> list_fault_ = {};
  std::vector<char> lost_;           // by chunk
  std::vector<char> lost_recovery_;  // by recovery chunk
};

}  // namespace sealift::bundle
