// SPDX-License-Identifier: Apache-2.0
// Cuts bytes into chunks of one size, the last as short as it is; see chunk_digester.hpp.
#include "sealift/bundle/payload/chunk_digester.hpp"

#include <algorithm>
#include <utility>

namespace sealift::bundle {

void ChunkDigester::update(ByteView bytes) {
  while (!bytes.empty()) {
    const ByteView piece =
        bytes.first(static_cast<std::size_t>(std::min<std::uint64_t>(chunk_size_ - filled_, bytes.size())));
    hasher_.update(piece);
    bytes = bytes.subspan(piece.size());
    if ((filled_ += piece.size()) < chunk_size_) continue;
    chunks_.push_back(hasher_.finish());
    filled_ = 0;
  }
}

std::vector<Digest> ChunkDigester::finish() {
  if (filled_ != 0) chunks_.push_back(hasher_.finish());
  return std::move(chunks_);
}

}  // namespace sealift::bundle
