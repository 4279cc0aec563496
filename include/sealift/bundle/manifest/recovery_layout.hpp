// SPDX-License-Identifier: Apache-2.0
// Which bytes of a payload recovery data is of: whole chunks are gathered into pieces of about one chunk size, and each
// group has every n-th piece, so that a long scratch takes a little of each group. FORMAT.md, "Recovery data".
// Derived from the signed manifest alone, as the places of chunks are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sealift/bundle/manifest/chunk_layout.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::bundle {

inline constexpr std::uint64_t kMaxPieces = 255;  // of a group, with its recovery chunks: the code counts in bytes
// As many bytes of a group as a mender holds at a time: `parity` pieces.
inline constexpr std::uint64_t kMendMemory = std::uint64_t{128} << 20;

// Pieces are numbered in payload order, recovery chunks in the order of their files.
class RecoveryLayout {
 public:
  // Of values in which fault_of() finds nothing.
  RecoveryLayout(const Payload& payload, const Recovery& recovery);

  std::uint64_t pieces() const { return firsts_.size() - 1; }
  // Bytes of the largest piece, and of each recovery chunk. A shorter piece counts as if zeros followed it.
  std::uint64_t piece_size() const { return piece_size_; }
  std::uint64_t groups() const { return groups_; }
  std::uint64_t parity() const { return parity_; }
  std::uint64_t recovery_chunks() const { return groups_ * parity_; }

  // Piece `index` holds the chunks from this one to the one before the next piece's.
  std::uint64_t first_chunk(std::uint64_t index) const { return firsts_[static_cast<std::size_t>(index)]; }
  // The piece that holds chunk `index`.
  std::uint64_t piece_of(std::uint64_t chunk) const;
  std::uint64_t group_of(std::uint64_t piece) const { return piece % groups_; }
  // How many pieces the group has; its k-th is piece k * groups() + group.
  std::uint64_t pieces_of(std::uint64_t group) const { return (pieces() - group + groups_ - 1) / groups_; }
  std::uint64_t piece_at(std::uint64_t group, std::uint64_t position) const { return position * groups_ + group; }
  // The number of a group's recovery chunk `number`, below parity(): each file has some of each group.
  std::uint64_t recovery_chunk(std::uint64_t group, std::uint64_t number) const { return number * groups_ + group; }

 private:
  std::uint64_t groups_;
  std::uint64_t parity_;
  std::uint64_t piece_size_ = 0;
  std::vector<std::uint64_t> firsts_;  // by piece its first chunk, and at the end the number of chunks
};

// Why these are no groups of this payload, as a sentence; empty: they are. Needs memory for the payload's chunks only.
std::string fault_of(const Payload& payload, const Recovery& recovery);

// The fewest groups whose recovery chunks are `percent` of their pieces, rounded up; without list and files. `percent`
// is 1 to 100.
Recovery recovery_of_percent(const Payload& payload, unsigned percent);

// Whether any one lost volume can be mended from the others, while no recovery file is lost.
bool mends_any_volume(const Payload& payload);

}  // namespace sealift::bundle
