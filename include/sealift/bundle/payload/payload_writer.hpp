// SPDX-License-Identifier: Apache-2.0
// The mirror of payload_reader: a byte stream in, volumes and their chunk list out. Each byte is hashed once on its
// way, by threads that also write it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sealift/bundle/core/bytes.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/core/output_file.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::bundle {

// Members throw Io, or Space when the disk is full. Can be neither copied nor moved.
class PayloadWriter {
 public:
  // Writes STEM.vol001, STEM.vol002, ... into `folder`, each of whole chunks and at most `volume_size` bytes; 0:
  // one volume. Throws Usage when a volume would be smaller than a chunk.
  PayloadWriter(std::filesystem::path folder, std::string stem, std::uint64_t chunk_size, std::uint64_t volume_size,
                DigestAlgorithm digest = DigestAlgorithm::Sha256);
  PayloadWriter(const PayloadWriter&) = delete;
  PayloadWriter& operator=(const PayloadWriter&) = delete;
  ~PayloadWriter();

  // Bytes appended so far.
  std::uint64_t size() const;

  void append(ByteView bytes);
  // What is appended next begins a chunk of its own: Payload::cuts.
  void begin_chunk();
  // Takes back everything behind the first `size` bytes, as if it had never been appended.
  void cut_back(std::uint64_t size);

  // Writes STEM.chunks, makes every file durable and returns what the manifest says of them. Called once, last.
  Payload finish();
  // After finish(): the digests of all chunks.
  const std::vector<Digest>& chunks() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sealift::bundle
