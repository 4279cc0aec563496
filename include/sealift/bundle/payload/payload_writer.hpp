// SPDX-License-Identifier: Apache-2.0
// The mirror of payload_reader: a byte stream in, volumes and their chunk list out. Each byte is hashed once on its
// way, by threads that also write it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
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
  // The first `size` bytes of `file`, beginning a chunk of their own. Threads read them while more is appended, and
  // tell `on_read` how many they have read. Throws as InputFile does, here or later.
  using OnRead = std::function<void(std::uint64_t)>;
  void append_file(const std::filesystem::path& file, std::uint64_t size, OnRead on_read = {});
  // What is appended next begins a chunk of its own: Payload::cuts.
  void begin_chunk();
  // How many chunks are complete.
  std::size_t chunk_count() const;
  // Puts `size` other bytes in the place of those at `begin`, where a chunk begins as one ends behind them: `fill` gets
  // the offset of each chunk among them and its memory.
  using Fill = std::function<void(std::uint64_t, std::span<std::byte>)>;
  void overwrite(std::uint64_t begin, std::uint64_t size, const Fill& fill);
  // Takes back everything behind the first `size` bytes, as if it had never been appended.
  void cut_back(std::uint64_t size);

  // Writes STEM.chunks, makes every file durable and returns what the manifest says of them. Called once, last.
  Payload finish();
  // Waits until all complete chunks are written: their digests.
  const std::vector<Digest>& chunks() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sealift::bundle
