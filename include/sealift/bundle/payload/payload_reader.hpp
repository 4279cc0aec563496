// SPDX-License-Identifier: Apache-2.0
// The volumes seen as one stream of chunks. A chunk is read into memory once, checked there, and only then handed out:
// a medium that answers differently the second time gains nothing. No mmap: a failing disc would kill the process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/manifest/chunk_layout.hpp"
#include "sealift/bundle/manifest/manifest.hpp"
#include "sealift/bundle/payload/chunk_buffer.hpp"
#include "sealift/bundle/payload/volumes.hpp"

namespace sealift::bundle {

// Bytes of chunks that somebody keeps who reads a range to and fro; one chunk at least.
inline constexpr std::uint64_t kRangeMemory = 2 * kDefaultChunkSize;

// Safe from several threads. Can be neither copied nor moved.
class PayloadReader {
 public:
  // Opens every volume and compares its size with the signed one. Throws Missing or Digest, naming the volume, unless
  // there is somebody to ask for it, or what it lacks is mended while it is read. `chunks` are the signed digests.
  PayloadReader(VolumeSources sources, Payload payload, std::vector<Digest> chunks);
  PayloadReader(const std::filesystem::path& folder, Payload payload, std::vector<Digest> chunks);
  PayloadReader(const PayloadReader&) = delete;
  PayloadReader& operator=(const PayloadReader&) = delete;
  ~PayloadReader();

  const Payload& payload() const { return payload_; }
  const ChunkLayout& layout() const { return layout_; }
  // The digests of all chunks, as they were signed.
  const std::vector<Digest>& digests() const;
  // Whether every volume was there at the beginning; if not, reading in order asks for each disc once.
  bool all_there() const;

  // The bytes of chunk `index`, equal to what was signed, mended or not. Throws Digest or Io, naming volume and offset,
  // once nobody has a better volume. `memory` is reused for them: to read many chunks, pass the last one back.
  ChunkBuffer chunk(std::uint64_t index, ChunkBuffer memory = {}) const;

  // Announces that a range of `size` bytes at `offset` will be read once. A chunk that several announced ranges have
  // bytes in is kept from its first reader to its last, so it is read and hashed once for all of them.
  void expect(std::uint64_t offset, std::uint64_t size) const;
  // Ends what expect() announced.
  void leave(std::uint64_t offset, std::uint64_t size) const;
  // Chunk `index` if several expected ranges have bytes in it, shared with their other readers; otherwise nullptr.
  // `memory` is used if it has to be read.
  std::shared_ptr<const ChunkBuffer> kept(std::uint64_t index, ChunkBuffer& memory) const;
  // Takes over a chunk that chunk() returned, if an expected range has bytes in it. Otherwise, or when enough is kept,
  // it is let go.
  void keep(std::uint64_t index, ChunkBuffer bytes) const;

  // How many different chunks were read and found right so far, and whether this one was.
  std::uint64_t chunks_checked() const;
  bool has_checked(std::uint64_t index) const;

  // The volumes that were damaged where they were read, in order; each chunk counts once.
  std::vector<MendedVolume> mended() const;

  // Announces that chunk `index`, if there is one, is wanted soon. A hint: nothing fails.
  void will_need(std::uint64_t index) const;

  // "NAME.vol002 at offset 4194304", for messages.
  std::string describe(std::uint64_t payload_offset) const;

 private:
  struct State;

  Payload payload_;
  ChunkLayout layout_;
  std::unique_ptr<State> state_;  // open files, chunks read ahead, chunks kept
};

}  // namespace sealift::bundle
