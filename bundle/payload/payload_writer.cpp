// SPDX-License-Identifier: Apache-2.0
#include "sealift/bundle/payload/payload_writer.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <span>
#include <utility>

#include "bundle/payload/chunk_workers.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/payload/bundle_folder.hpp"

namespace sealift::bundle {

struct PayloadWriter::State {
  void append(ByteView bytes) {
    payload.size += bytes.size();
    while (!bytes.empty()) {
      if (!chunk) chunk = workers.take();
      const ByteView piece = bytes.first(std::min(chunk->room(), bytes.size()));
      chunk->append(piece);
      if (chunk->room() == 0) put_chunk();
      bytes = bytes.subspan(piece.size());
    }
  }

  void put_chunk() {
    if (volume && volume_size != 0 && payload.volumes.back().size == volume_size) close_volume();
    if (!volume) open_volume();
    std::uint64_t& size = payload.volumes.back().size;
    const std::uint64_t offset = std::exchange(size, size + chunk->size());
    workers.put(*std::exchange(chunk, std::nullopt), volume, offset);
  }

  void open_volume() {
    char number[16];
    std::snprintf(number, sizeof number, ".vol%03zu", payload.volumes.size() + 1);
    payload.volumes.push_back({.name = stem + number, .size = 0});
    volume = std::make_shared<VolumeOutput>(folder / payload.volumes.back().name);
  }

  void close_volume() {
    if (!volume) return;
    workers.finish();
    volume->sync();
    volume.reset();
  }

  void cut_back(std::uint64_t size) {
    const std::uint64_t in_volumes = workers.finish().size() * payload.chunk_size;
    if (size < in_volumes)
      cut_volumes(size, in_volumes);
    else if (chunk)
      chunk->shorten(static_cast<std::size_t>(size - in_volumes));
    payload.size = size;
  }

  // Volumes keep their whole chunks; the rest of the last chunk is read back, to be filled up again.
  void cut_volumes(std::uint64_t size, std::uint64_t end) {
    const std::uint64_t whole = size / payload.chunk_size * payload.chunk_size;
    close_volume();
    for (; end - payload.volumes.back().size > whole; payload.volumes.pop_back()) {
      end -= payload.volumes.back().size;
      std::filesystem::remove(folder / payload.volumes.back().name);
    }
    Volume& last = payload.volumes.back();
    const std::filesystem::path path = folder / last.name;
    last.size = whole - (end - last.size);
    if (!chunk) chunk = workers.take();
    InputFile(path).read_exactly(last.size, chunk->resize(static_cast<std::size_t>(size - whole)));
    std::filesystem::resize_file(path, last.size);
    volume = std::make_shared<VolumeOutput>(path, VolumeOutput::Opening::Again);
    workers.forget_after(static_cast<std::size_t>(whole / payload.chunk_size));
  }

  std::filesystem::path folder;
  std::string stem;
  std::uint64_t volume_size;
  Payload payload;
  ChunkWorkers workers;
  std::optional<ChunkBuffer> chunk = {};  // the one that is being filled
  std::shared_ptr<const VolumeOutput> volume = {};
};

PayloadWriter::PayloadWriter(std::filesystem::path folder, std::string stem, std::uint64_t chunk_size,
                             std::uint64_t volume_size, DigestAlgorithm digest) {
  const std::uint64_t whole_chunks = volume_size / chunk_size * chunk_size;
  if (volume_size != 0 && whole_chunks == 0)
    throw Error(ErrorCode::Usage, {.what = "a volume cannot be smaller than a chunk",
                                   .expected = "at least " + std::to_string(chunk_size) + " bytes",
                                   .got = std::to_string(volume_size) + " bytes"});
  state_.reset(new State{.folder = std::move(folder),
                         .stem = std::move(stem),
                         .volume_size = whole_chunks,
                         .payload = {.chunk_size = chunk_size, .digest = digest},
                         .workers = {static_cast<std::size_t>(chunk_size), digest}});
}

PayloadWriter::~PayloadWriter() = default;

std::uint64_t PayloadWriter::size() const {
  return state_->payload.size;
}

void PayloadWriter::append(ByteView bytes) {
  state_->append(bytes);
}

void PayloadWriter::cut_back(std::uint64_t size) {
  state_->cut_back(size);
}

Payload PayloadWriter::finish() {
  State& state = *state_;
  if (state.chunk && !state.chunk->empty()) state.put_chunk();
  state.close_volume();
  const ByteView chunk_list = std::as_bytes(std::span(state.workers.finish()));
  state.payload.chunk_list_digest = digest_of(chunk_list, state.payload.digest);
  write_text(state.folder / (state.stem + std::string(kChunksSuffix)), as_text(chunk_list));
  return std::move(state.payload);
}

}  // namespace sealift::bundle
