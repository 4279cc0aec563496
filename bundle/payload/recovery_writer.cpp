// SPDX-License-Identifier: Apache-2.0
#include "sealift/bundle/payload/recovery_writer.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "bundle/payload/reed_solomon.hpp"
#include "bundle/payload/volume_output.hpp"
#include "sealift/bundle/core/output_file.hpp"
#include "sealift/bundle/core/parallel_for.hpp"
#include "sealift/bundle/manifest/recovery_layout.hpp"
#include "sealift/bundle/payload/bundle_folder.hpp"

namespace sealift::bundle {
namespace {

// Recovery chunks as files of so many each.
class RecoveryFiles {
 public:
  RecoveryFiles(const std::filesystem::path& folder, const std::string& stem, const RecoveryLayout& layout,
                std::uint64_t volume_size)
      : chunk_(layout.piece_size()), each_(volume_size == 0 ? layout.recovery_chunks() : volume_size / chunk_) {
    if (each_ == 0)
      throw Error(ErrorCode::Usage, {.what = "a volume cannot be smaller than a recovery chunk",
                                     .expected = "at least " + std::to_string(chunk_) + " bytes",
                                     .got = std::to_string(volume_size) + " bytes"});
    for (std::uint64_t left = layout.recovery_chunks(); left != 0; left -= std::min(left, each_)) {
      char number[16];
      std::snprintf(number, sizeof number, ".rec%03zu", names_.size() + 1);
      names_.push_back({.name = stem + number, .size = std::min(left, each_) * chunk_});
      files_.push_back(std::make_unique<VolumeOutput>(folder / names_.back().name));
    }
  }

  void write(std::uint64_t index, ByteView bytes) const {
    files_[static_cast<std::size_t>(index / each_)]->write(bytes, index % each_ * chunk_);
  }
  void sync() const {
    for (const auto& file : files_) file->sync();
  }
  const std::vector<Volume>& names() const { return names_; }

 private:
  std::uint64_t chunk_;
  std::uint64_t each_;
  std::vector<Volume> names_;
  std::vector<std::unique_ptr<VolumeOutput>> files_;
};

PieceSums sums_of_group(const PayloadReader& payload, const RecoveryLayout& layout, std::uint64_t group,
                        const std::function<void(std::uint64_t)>& progress) {
  const std::uint64_t pieces = layout.pieces_of(group);
  PieceSums sums = PieceSums::recovery_chunks(pieces, layout.parity(), static_cast<std::size_t>(layout.piece_size()));
  ChunkBuffer memory;
  for (std::uint64_t position = 0; position < pieces; ++position) {
    const std::uint64_t piece = layout.piece_at(group, position);
    if (position + 1 < pieces) payload.will_need(layout.first_chunk(layout.piece_at(group, position + 1)));
    std::size_t offset = 0;
    for (std::uint64_t chunk = layout.first_chunk(piece); chunk < layout.first_chunk(piece + 1); ++chunk) {
      memory = payload.chunk(chunk, std::move(memory));
      sums.add(position, offset, memory.view());
      offset += memory.size();
      if (progress) progress(memory.size());
    }
  }
  return sums;
}

}  // namespace

Recovery write_recovery(const PayloadReader& payload, Recovery wanted, const std::filesystem::path& folder,
                        const std::string& stem, std::uint64_t volume_size,
                        const std::function<void(std::uint64_t)>& progress) {
  const RecoveryLayout layout(payload.payload(), wanted);
  const RecoveryFiles files(folder, stem, layout, volume_size);
  std::vector<Digest> digests(static_cast<std::size_t>(layout.recovery_chunks()));
  const std::uint64_t at_a_time = kMendMemory / (layout.parity() * layout.piece_size());
  const auto threads = static_cast<unsigned>(
      std::clamp<std::uint64_t>(at_a_time, 1, std::clamp(std::thread::hardware_concurrency(), 1u, 8u)));
  parallel_for(threads, static_cast<std::size_t>(layout.groups()), [&](std::size_t group) {
    const PieceSums sums = sums_of_group(payload, layout, group, progress);
    for (std::uint64_t number = 0; number < layout.parity(); ++number) {
      const std::uint64_t index = layout.recovery_chunk(group, number);
      files.write(index, sums.result(number));
      digests[static_cast<std::size_t>(index)] = digest_of(sums.result(number), payload.payload().digest);
    }
  });
  files.sync();
  const ByteView list = std::as_bytes(std::span(digests));
  write_text(folder / (stem + std::string(kRecoverySuffix)), as_text(list));
  wanted.list_digest = digest_of(list, payload.payload().digest);
  wanted.files = files.names();
  return wanted;
}

}  // namespace sealift::bundle
