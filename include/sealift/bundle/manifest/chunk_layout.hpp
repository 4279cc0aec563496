// SPDX-License-Identifier: Apache-2.0
// Where each chunk of a payload begins and ends. An entry begins a chunk of its own and ends one, so that the digests
// of its chunks are its own digests and no other pass over its bytes is needed; between entries lie chunks of no entry.
// Derived from the signed manifest: nothing in the payload or the chunk list says where to cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::bundle {

// Offsets and sizes in bytes of the payload.
class ChunkLayout {
 public:
  // For a payload with a chunk size above 0; cuts outside of it are passed over.
  explicit ChunkLayout(const Payload& payload);

  std::uint64_t count() const { return runs_.back().first; }
  // Where chunk `index` begins; of `count()` the payload's end.
  std::uint64_t begin_of(std::uint64_t index) const;
  std::size_t size_of(std::uint64_t index) const {
    return static_cast<std::size_t>(begin_of(index + 1) - begin_of(index));
  }
  // The chunk that holds the byte at `offset`, which is inside the payload.
  std::uint64_t at(std::uint64_t offset) const;
  // The first chunk that begins at `offset` or behind it; count() when there is none.
  std::uint64_t from(std::uint64_t offset) const;

 private:
  // Chunks of the full size, but for the last of them.
  struct Run {
    std::uint64_t begin;  // offset
    std::uint64_t first;  // number of its first chunk
  };

  std::uint64_t chunk_size_;
  std::vector<Run> runs_;  // by offset; one that holds nothing closes the list
};

// Where the stored bytes of these entries begin and end: Payload::cuts of their manifest. Sorted, each once.
std::vector<std::uint64_t> cuts_of(std::span<const Entry> entries, std::uint64_t payload_size);

// The chunks of a carried entry, out of the digests of all chunks. `entry` begins and ends chunks of `layout`.
std::span<const Digest> chunks_of(const Entry& entry, const ChunkLayout& layout, std::span<const Digest> chunks);

// What names an entry's content in stores and inventories: SHA-256 of the line
//   "sealift-content-v2 ENCODING SIZE SHA256 STORED_SIZE DIGEST CHUNK_SIZE\n"
// (of a patch with " BASE", what it builds on, before the end of the line) and the digests of its chunks behind it. The
// name vouches for the stored bytes, no matter who says it, as far as the chunk digest has no collisions: another byte,
// another encoding or another promised SHA-256 is another name.
Digest content_digest(const Entry& entry, const Payload& payload, std::span<const Digest> chunks);

// Gives each carried entry its Entry::content.
void name_contents(Manifest& manifest, std::span<const Digest> chunks);

}  // namespace sealift::bundle
