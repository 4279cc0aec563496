// SPDX-License-Identifier: Apache-2.0
// Gathers chunks into pieces and deals pieces to groups; see recovery_layout.hpp.
#include "sealift/bundle/manifest/recovery_layout.hpp"

#include <algorithm>

namespace sealift::bundle {
namespace {

struct Gathered {
  std::vector<std::uint64_t> firsts;
  std::uint64_t largest = 0;
};

// A piece takes chunks as long as it stays within one chunk size.
Gathered gather(const Payload& payload) {
  const ChunkLayout layout(payload);
  Gathered out;
  std::uint64_t begin = 0;
  for (std::uint64_t chunk = 0; chunk < layout.count(); ++chunk) {
    if (chunk == 0 || layout.begin_of(chunk + 1) - begin > payload.chunk_size) {
      out.firsts.push_back(chunk);
      begin = layout.begin_of(chunk);
    }
    out.largest = std::max(out.largest, layout.begin_of(chunk + 1) - begin);
  }
  out.firsts.push_back(layout.count());
  return out;
}

std::uint64_t rounded_up(std::uint64_t dividend, std::uint64_t divisor) {
  return (dividend + divisor - 1) / divisor;
}

}  // namespace

RecoveryLayout::RecoveryLayout(const Payload& payload, const Recovery& recovery)
    : groups_(recovery.groups), parity_(recovery.parity) {
  Gathered gathered = gather(payload);
  piece_size_ = gathered.largest;
  firsts_ = std::move(gathered.firsts);
}

std::uint64_t RecoveryLayout::piece_of(std::uint64_t chunk) const {
  const auto next = std::upper_bound(firsts_.begin(), firsts_.end(), chunk);
  return static_cast<std::uint64_t>(next - firsts_.begin()) - 1;
}

std::string fault_of(const Payload& payload, const Recovery& recovery) {
  const Gathered gathered = gather(payload);
  const std::uint64_t pieces = gathered.firsts.size() - 1;
  if (recovery.groups == 0 || recovery.groups > pieces) return "a payload has a group at least, and each has a piece";
  if (recovery.parity == 0) return "a group without a recovery chunk mends nothing";
  if (recovery.parity > kMaxPieces || rounded_up(pieces, recovery.groups) + recovery.parity > kMaxPieces)
    return "a group has at most 255 pieces and recovery chunks";
  if (recovery.parity * gathered.largest > kMendMemory) return "the recovery chunks of a group exceed 128 MiB";
  if (recovery.groups * recovery.parity > kMaxChunks) return "at most 2097152 recovery chunks are read";
  return {};
}

Recovery recovery_of_percent(const Payload& payload, unsigned percent) {
  const Gathered gathered = gather(payload);
  const std::uint64_t pieces = gathered.firsts.size() - 1;
  const auto parity_of = [&](std::uint64_t of) { return std::max<std::uint64_t>(1, rounded_up(of * percent, 100)); };
  std::uint64_t most = kMaxPieces - 1;  // pieces of a group
  while (most > 1 && (most + parity_of(most) > kMaxPieces || parity_of(most) * gathered.largest > kMendMemory)) --most;
  const std::uint64_t groups = rounded_up(pieces, most);
  return {.groups = groups, .parity = parity_of(rounded_up(pieces, groups)), .list_digest = {}, .files = {}};
}

bool mends_any_volume(const Payload& payload) {
  if (!payload.recovery) return false;
  const RecoveryLayout layout(payload, *payload.recovery);
  const ChunkLayout chunks(payload);
  std::uint64_t begin = 0;
  for (const Volume& volume : payload.volumes) {
    const std::uint64_t first = layout.piece_of(chunks.at(begin));
    const std::uint64_t last = layout.piece_of(chunks.at(begin + volume.size - 1));
    if (last - first >= layout.groups() * layout.parity()) return false;
    begin += volume.size;
  }
  return true;
}

}  // namespace sealift::bundle
