// SPDX-License-Identifier: Apache-2.0
// Reed and Solomon's code over GF(2^8), as ISA-L computes it: the one door to its arithmetic. Input pieces come one
// after the other and are let go, so memory holds the results alone. FORMAT.md, "Recovery data", has the formula.
#pragma once

#include <cstdint>
#include <vector>

#include "sealift/bundle/core/bytes.hpp"
#include "sealift/bundle/payload/chunk_buffer.hpp"

namespace sealift::bundle {

// Pieces that are sums of others, each times a factor of its own. For one thread.
class PieceSums {
 public:
  // The recovery chunks of a group of `pieces` pieces: inputs are these, in order.
  static PieceSums recovery_chunks(std::uint64_t pieces, std::uint64_t parity, std::size_t size);
  // Lost pieces of such a group. `there`, as many as `pieces`, are the inputs in order: below `pieces` a piece, from
  // there on a recovery chunk. `lost` are pieces, none of them there.
  static PieceSums lost_pieces(std::uint64_t pieces, std::uint64_t parity, const std::vector<std::uint64_t>& there,
                               const std::vector<std::uint64_t>& lost, std::size_t size);

  // Adds `bytes`, which stand at `offset` of input `number`; what nobody adds is zero.
  void add(std::uint64_t number, std::size_t offset, ByteView bytes);
  // After everything was added: result `number`, `size` bytes.
  ByteView result(std::uint64_t number) const { return results_[static_cast<std::size_t>(number)].view(); }

 private:
  // `factors`: for each result one row of a factor for each input.
  PieceSums(std::uint64_t inputs, std::uint64_t results, std::vector<unsigned char> factors, std::size_t size);

  std::uint64_t inputs_;
  std::vector<unsigned char> tables_;
  std::vector<ChunkBuffer> results_;
};

}  // namespace sealift::bundle
