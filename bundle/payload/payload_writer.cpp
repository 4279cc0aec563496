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

namespace {

// A volume begins at a whole page of the payload where it can, so that its chunks are read and written past the page
// cache: what lies between two entries is shorter than this, and goes into the volume that was full before.
constexpr std::uint64_t kReserve = 8192;
constexpr std::uint64_t kSmallVolume = std::uint64_t{1} << 20;

}  // namespace

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

  void begin_chunk() {
    if (chunk && !chunk->empty()) put_chunk();
    if (payload.size != 0 && (payload.cuts.empty() || payload.cuts.back() != payload.size))
      payload.cuts.push_back(payload.size);
  }

  // How much of the payload is in volumes.
  std::uint64_t put() const { return ends.empty() ? 0 : ends.back(); }

  bool fits(std::uint64_t bytes) const {
    const std::uint64_t size = payload.volumes.back().size;
    const bool at_page = put() % ChunkBuffer::kAlignment == 0;
    const std::uint64_t reserve = at_page && volume_size >= kSmallVolume ? kReserve : 0;
    return volume_size == 0 || size == 0 || size + bytes + reserve <= volume_size;
  }

  void put_chunk(ChunkOrigin origin = {}) {
    if (volume && !fits(chunk->size())) close_volume();
    if (!volume) open_volume();
    std::uint64_t& size = payload.volumes.back().size;
    ends.push_back(put() + chunk->size());
    const std::uint64_t offset = std::exchange(size, size + chunk->size());
    workers.put(*std::exchange(chunk, std::nullopt), volume, offset, std::move(origin));
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
    workers.finish();
    if (size < put())
      cut_volumes(size, put());
    else if (chunk)
      chunk->shorten(static_cast<std::size_t>(size - put()));
    payload.size = size;
    while (!payload.cuts.empty() && payload.cuts.back() > size) payload.cuts.pop_back();
  }

  // Volumes keep their whole chunks; the rest of the chunk behind them is read back, to be filled up again.
  void cut_volumes(std::uint64_t size, std::uint64_t end) {
    while (!ends.empty() && ends.back() > size) ends.pop_back();
    const std::uint64_t whole = put();
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
    workers.forget_after(ends.size());
  }

  // Rare, so by this thread alone; the volumes before the last one have been synced already.
  void overwrite(std::uint64_t begin, std::uint64_t size, const Fill& fill) {
    workers.finish();
    ChunkBuffer memory;
    auto index = static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin());
    auto at = payload.volumes.begin();
    std::uint64_t offset = begin;  // in the volume
    for (; offset >= at->size; ++at) offset -= at->size;
    for (std::uint64_t done = 0; done < size; ++index, offset += memory.size(), done += memory.size()) {
      if (offset == at->size) ++at, offset = 0;
      fill(done, memory.resize(static_cast<std::size_t>(ends.at(index) - begin - done)));
      const VolumeOutput file(folder / at->name, VolumeOutput::Opening::Again);
      file.write(memory.view(), offset);
      file.sync();
      workers.replace(index, digest_of(memory.view(), payload.digest));
    }
  }

  std::filesystem::path folder;
  std::string stem;
  std::uint64_t volume_size;
  Payload payload;
  ChunkWorkers workers;
  std::optional<ChunkBuffer> chunk = {};  // the open one
  std::vector<std::uint64_t> ends = {};   // of the chunks in volumes
  std::shared_ptr<const VolumeOutput> volume = {};
};

PayloadWriter::PayloadWriter(std::filesystem::path folder, std::string stem, std::uint64_t chunk_size,
                             std::uint64_t volume_size, DigestAlgorithm digest) {
  if (volume_size != 0 && volume_size < chunk_size)
    throw Error(ErrorCode::Usage, {.what = "a volume cannot be smaller than a chunk",
                                   .expected = "at least " + std::to_string(chunk_size) + " bytes",
                                   .got = std::to_string(volume_size) + " bytes"});
  state_.reset(new State{.folder = std::move(folder),
                         .stem = std::move(stem),
                         .volume_size = volume_size,
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

void PayloadWriter::append_file(const std::filesystem::path& file, std::uint64_t size, OnRead on_read) {
  State& state = *state_;
  const auto source = std::make_shared<const ChunkFile>(ChunkFile{InputFile(file), std::move(on_read)});
  state.begin_chunk();
  for (std::uint64_t offset = 0; offset < size;) {
    if (!state.chunk) state.chunk = state.workers.take();
    const std::uint64_t count = std::min(state.payload.chunk_size, size - offset);
    state.chunk->resize(static_cast<std::size_t>(count));
    state.payload.size += count;
    state.put_chunk({.file = source, .offset = offset});
    offset += count;
  }
}

void PayloadWriter::begin_chunk() {
  state_->begin_chunk();
}

std::size_t PayloadWriter::chunk_count() const {
  return state_->ends.size();
}

void PayloadWriter::overwrite(std::uint64_t begin, std::uint64_t size, const Fill& fill) {
  state_->overwrite(begin, size, fill);
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

const std::vector<Digest>& PayloadWriter::chunks() const {
  return state_->workers.finish();
}

}  // namespace sealift::bundle
