// SPDX-License-Identifier: Apache-2.0
// What a group gives beside the chunk that is wanted is kept: a reader comes to it later.
#include "bundle/payload/chunk_mender.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "sealift/bundle/core/human_text.hpp"

namespace sealift::bundle {

ChunkMender::ChunkMender(const Payload& payload, const std::vector<Digest>& chunks,
                         std::vector<std::filesystem::path> folders, MendingLimits limits)
    : payload_(payload), chunks_(chunks), folders_(std::move(folders)), limits_(limits) {}

SurvivingPayload& ChunkMender::opened() {
  if (!files_) files_.emplace(payload_, chunks_, folders_);
  return *files_;
}

bool ChunkMender::mends_what_is_cut_off() {
  const std::lock_guard lock(guard_);
  const SurvivingPayload& files = opened();
  std::uint64_t bytes = 0;
  for (std::uint64_t chunk = 0; chunk < chunks_.size(); ++chunk)
    if (files.is_lost(chunk)) bytes += files.chunks().size_of(chunk);
  if (bytes > limits_.kept) return false;
  for (std::uint64_t group = 0; group < files.layout().groups(); ++group)
    if (files.missing_of(group) != 0) return false;
  return true;
}

bool ChunkMender::read(std::uint64_t index, ChunkBuffer& memory) {
  const std::lock_guard lock(guard_);
  if (rebuilt_.contains(index)) return false;
  SurvivingPayload& files = opened();
  files.set_lost(index, files.is_lost(index) || files.read(index, memory));
  return !files.is_lost(index);
}

std::optional<Error> ChunkMender::mend(std::uint64_t index, ChunkBuffer& memory) {
  const std::lock_guard lock(guard_);
  if (const auto known = rebuilt_.find(index); known != rebuilt_.end()) {
    std::ranges::copy(known->second, memory.resize(known->second.size()).begin());
    return std::nullopt;
  }
  SurvivingPayload& files = opened();
  files.set_lost(index, true);
  if (!files.has_list() && files.list_fault()) return files.list_fault();
  const RecoveryLayout& layout = files.layout();
  const std::uint64_t size = layout.pieces_of(layout.group_of(layout.piece_of(index))) * layout.piece_size();
  if (read_ + size > limits_.read)
    return Error(ErrorCode::Digest, {.what = "more is damaged than is mended while it is read",
                                     .expected = "at most " + human_size(limits_.read) + " to read again for it",
                                     .got = human_size(read_ + size)});
  read_ += size;
  return files.rebuild(index, [&](std::uint64_t chunk, ByteView bytes) {
    if (chunk == index) std::ranges::copy(bytes, memory.resize(bytes.size()).begin());
    keep(chunk, bytes);
  });
}

void ChunkMender::keep(std::uint64_t index, ByteView bytes) {
  if (bytes.size() > limits_.kept || rebuilt_.contains(index)) return;
  while (rebuilt_bytes_ + bytes.size() > limits_.kept) {
    const auto oldest = rebuilt_.find(oldest_first_.front());
    oldest_first_.pop_front();
    rebuilt_bytes_ -= oldest->second.size();
    rebuilt_.erase(oldest);
  }
  rebuilt_.emplace(index, Bytes(bytes.begin(), bytes.end()));
  oldest_first_.push_back(index);
  rebuilt_bytes_ += bytes.size();
}

void ChunkMender::close() {
  const std::lock_guard lock(guard_);
  files_.reset();
}

void ChunkMender::look_in(std::vector<std::filesystem::path> folders) {
  const std::lock_guard lock(guard_);
  folders_ = std::move(folders);
  files_.reset();
}

}  // namespace sealift::bundle
