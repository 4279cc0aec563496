// SPDX-License-Identifier: Apache-2.0
// Cuts a payload into runs of equal chunks, and names entries by their chunks; see chunk_layout.hpp.
#include "sealift/bundle/manifest/chunk_layout.hpp"

#include <algorithm>
#include <string>

namespace sealift::bundle {

ChunkLayout::ChunkLayout(const Payload& payload) : chunk_size_(payload.chunk_size) {
  std::uint64_t begin = 0, first = 0;
  const auto end_run = [&](std::uint64_t end) {
    runs_.push_back({.begin = begin, .first = first});
    first += (end - begin + chunk_size_ - 1) / chunk_size_;
    begin = end;
  };
  for (const std::uint64_t cut : payload.cuts)
    if (cut > begin && cut < payload.size) end_run(cut);
  if (payload.size > begin) end_run(payload.size);
  runs_.push_back({.begin = begin, .first = first});
}

std::uint64_t Payload::chunk_count() const {
  return ChunkLayout(*this).count();
}

std::uint64_t ChunkLayout::begin_of(std::uint64_t index) const {
  const auto next = std::upper_bound(runs_.begin(), runs_.end(), index,
                                     [](std::uint64_t wanted, const Run& run) { return wanted < run.first; });
  const Run& run = *(next - 1);
  return run.begin + (index - run.first) * chunk_size_;
}

std::uint64_t ChunkLayout::at(std::uint64_t offset) const {
  const auto next = std::upper_bound(runs_.begin(), runs_.end(), offset,
                                     [](std::uint64_t wanted, const Run& run) { return wanted < run.begin; });
  const Run& run = *(next - 1);
  return run.first + (offset - run.begin) / chunk_size_;
}

std::uint64_t ChunkLayout::from(std::uint64_t offset) const {
  if (offset >= runs_.back().begin) return count();
  const std::uint64_t index = at(offset);
  return begin_of(index) == offset ? index : index + 1;
}

std::vector<std::uint64_t> cuts_of(std::span<const Entry> entries, std::uint64_t payload_size) {
  std::vector<std::uint64_t> cuts;
  for (const Entry& entry : entries) {
    if (entry.absent) continue;
    cuts.push_back(entry.offset);
    cuts.push_back(entry.offset + entry.stored_size);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::erase_if(cuts, [&](std::uint64_t cut) { return cut == 0 || cut >= payload_size; });
  return cuts;
}

std::span<const Digest> chunks_of(const Entry& entry, const ChunkLayout& layout, std::span<const Digest> chunks) {
  const std::uint64_t first = layout.from(entry.offset), end = layout.from(entry.offset + entry.stored_size);
  return chunks.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(end - first));
}

Digest content_digest(const Entry& entry, const Payload& payload, std::span<const Digest> chunks) {
  const std::string line = "sealift-content-v2 " + name_of(entry.encoding) + " " + std::to_string(entry.size) + " " +
                           entry.sha256.hex() + " " + std::to_string(entry.stored_size) + " " +
                           name_of(payload.digest) + " " + std::to_string(payload.chunk_size) +
                           (entry.encoding == Encoding::Patch ? " " + entry.base.hex() : "") + "\n";
  Hasher hasher;
  hasher.update(as_bytes(line));
  hasher.update(std::as_bytes(chunks));
  return hasher.finish();
}

void name_contents(Manifest& manifest, std::span<const Digest> chunks) {
  const ChunkLayout layout(manifest.payload);
  for (Entry& entry : manifest.entries)
    if (!entry.absent) entry.content = content_digest(entry, manifest.payload, chunks_of(entry, layout, chunks));
}

}  // namespace sealift::bundle
