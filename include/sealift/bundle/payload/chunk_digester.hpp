// SPDX-License-Identifier: Apache-2.0
// The digests that an entry's chunks will have, before it is in any payload: for who must name it without writing it.
#pragma once

#include <cstdint>
#include <vector>

#include "sealift/bundle/core/bytes.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::bundle {

// Cuts bytes that arrive in order into chunks, and digests each.
class ChunkDigester {
 public:
  explicit ChunkDigester(std::uint64_t chunk_size = kDefaultChunkSize, DigestAlgorithm digest = DigestAlgorithm::Sha256)
      : chunk_size_(chunk_size), hasher_(digest) {}

  void update(ByteView bytes);
  // Of everything so far, the last chunk as short as it is. Called once, last.
  std::vector<Digest> finish();

 private:
  std::uint64_t chunk_size_;
  std::uint64_t filled_ = 0;  // bytes of the chunk that is being hashed
  Hasher hasher_;
  std::vector<Digest> chunks_;
};

}  // namespace sealift::bundle
