// SPDX-License-Identifier: Apache-2.0
#include "bundle/payload/surviving_payload.hpp"

#include <algorithm>
#include <utility>

#include "sealift/bundle/payload/bundle_folder.hpp"

namespace sealift::bundle {
namespace {

// Without recovery data all is one group, which nothing mends.
Recovery recovery_or_none(const Payload& payload) {
  if (payload.recovery) return *payload.recovery;
  return {.groups = 1, .parity = 0, .list_digest = {}, .files = {}};
}

std::vector<std::uint64_t> ends_of(const std::vector<Volume>& files) {
  std::vector<std::uint64_t> ends;
  for (const Volume& file : files) ends.push_back((ends.empty() ? 0 : ends.back()) + file.size);
  return ends;
}

// Runs of chunks in files: where a byte of the run is.
SignedRange range_at(const std::vector<std::uint64_t>& ends, std::uint64_t offset, const Digest& digest) {
  const auto file = static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), offset) - ends.begin());
  return {.file = file, .offset = offset - (file == 0 ? 0 : ends[file - 1]), .digest = digest};
}

// The list is named as the recovery files are.
std::string list_name(const Recovery& recovery) {
  const std::string& first = recovery.files.front().name;
  return first.substr(0, first.rfind('.')) + std::string(kRecoverySuffix);
}

}  // namespace

SurvivingPayload::SurvivingPayload(const Payload& payload, std::vector<Digest> chunks,
                                   const std::vector<std::filesystem::path>& folders)
    : payload_(payload),
      chunks_(payload_),
      digests_(std::move(chunks)),
      layout_(payload_, recovery_or_none(payload_)),
      volumes_(folders, payload_.volumes),
      recovery_(folders, payload_.recovery ? payload_.recovery->files : std::vector<Volume>{}),
      volume_ends_(ends_of(payload_.volumes)),
      recovery_ends_(payload_.recovery ? ends_of(payload_.recovery->files) : std::vector<std::uint64_t>{}),
      lost_(digests_.size()),
      lost_recovery_(static_cast<std::size_t>(layout_.recovery_chunks()), 1) {
  if (payload_.recovery) find_list(folders);
  for (std::uint64_t chunk = 0; chunk < digests_.size(); ++chunk)
    set_lost(chunk, !volumes_.reaches(place(chunk), chunks_.size_of(chunk)));
  if (has_list())
    for (std::uint64_t chunk = 0; chunk < layout_.recovery_chunks(); ++chunk)
      set_recovery_lost(chunk, !recovery_.reaches(recovery_place(chunk), layout_.piece_size()));
}

bool SurvivingPayload::has_recovery_file() const {
  for (std::size_t file = 0; file < recovery_ends_.size(); ++file)
    if (!recovery_.fault(file) || recovery_.is_there(file) || recovery_.fault(file)->code() != ErrorCode::Missing)
      return true;
  return false;
}

void SurvivingPayload::find_list(const std::vector<std::filesystem::path>& folders) {
  for (const std::filesystem::path& folder : folders) try {
      recovery_digests_ = read_recovery_list(folder / list_name(*payload_.recovery), payload_);
      list_fault_.reset();
      return;
    } catch (const Error& fault) {
      if (!list_fault_) list_fault_ = fault;
    }
}

SignedRange SurvivingPayload::place(std::uint64_t chunk) const {
  return range_at(volume_ends_, chunks_.begin_of(chunk), digests_[static_cast<std::size_t>(chunk)]);
}

SignedRange SurvivingPayload::recovery_place(std::uint64_t chunk) const {
  return range_at(recovery_ends_, chunk * layout_.piece_size(), recovery_digests_[static_cast<std::size_t>(chunk)]);
}

std::optional<Error> SurvivingPayload::read(std::uint64_t chunk, ChunkBuffer& memory,
                                            std::optional<Error>* passed_over) const {
  return volumes_.read(place(chunk), memory.resize(chunks_.size_of(chunk)), payload_.digest,
                       "chunk " + std::to_string(chunk), passed_over);
}

std::optional<Error> SurvivingPayload::read_recovery(std::uint64_t chunk, ChunkBuffer& memory) const {
  return recovery_.read(recovery_place(chunk), memory.resize(static_cast<std::size_t>(layout_.piece_size())),
                        payload_.digest, "recovery chunk " + std::to_string(chunk));
}

bool SurvivingPayload::is_piece_lost(std::uint64_t piece) const {
  const auto at = [&](std::uint64_t index) { return lost_.begin() + static_cast<std::ptrdiff_t>(index); };
  return std::any_of(at(layout_.first_chunk(piece)), at(layout_.first_chunk(piece + 1)), [](char bad) { return bad; });
}

// Positions in the group.
std::vector<std::uint64_t> SurvivingPayload::lost_of(std::uint64_t group) const {
  std::vector<std::uint64_t> positions;
  for (std::uint64_t position = 0; position < layout_.pieces_of(group); ++position)
    if (is_piece_lost(layout_.piece_at(group, position))) positions.push_back(position);
  return positions;
}

// Numbers of the group's recovery chunks that are there.
std::vector<std::uint64_t> SurvivingPayload::help_of(std::uint64_t group) const {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t number = 0; number < layout_.parity(); ++number)
    if (!lost_recovery_[static_cast<std::size_t>(layout_.recovery_chunk(group, number))]) numbers.push_back(number);
  return numbers;
}

std::uint64_t SurvivingPayload::missing_of(std::uint64_t group) const {
  const std::uint64_t lost = lost_of(group).size(), help = help_of(group).size();
  return lost > help ? lost - help : 0;
}

bool SurvivingPayload::add_piece(PieceSums* sums, std::uint64_t number, std::uint64_t piece, ChunkBuffer& memory) {
  std::size_t offset = 0;
  for (std::uint64_t chunk = layout_.first_chunk(piece); chunk < layout_.first_chunk(piece + 1); ++chunk) {
    if (read(chunk, memory)) {
      set_lost(chunk, true);
      return false;
    }
    if (sums != nullptr) sums->add(number, offset, memory.view());
    offset += memory.size();
  }
  return true;
}

bool SurvivingPayload::add_recovery(PieceSums* sums, std::uint64_t number, std::uint64_t chunk, ChunkBuffer& memory) {
  if (read_recovery(chunk, memory)) {
    set_recovery_lost(chunk, true);
    return false;
  }
  if (sums != nullptr) sums->add(number, 0, memory.view());
  return true;
}

// Nothing when something that was right before could not be read any more; the rest is then looked at all the same, so
// that one more time is enough.
std::optional<PieceSums> SurvivingPayload::sums_of(std::uint64_t group,
                                                   const std::vector<std::uint64_t>& lost_positions) {
  const std::uint64_t pieces = layout_.pieces_of(group);
  std::vector<std::uint64_t> there;
  for (std::uint64_t position = 0; position < pieces; ++position)
    if (!std::binary_search(lost_positions.begin(), lost_positions.end(), position)) there.push_back(position);
  for (const std::uint64_t number : help_of(group))
    if (there.size() < pieces) there.push_back(pieces + number);
  std::optional<PieceSums> sums = PieceSums::lost_pieces(pieces, layout_.parity(), there, lost_positions,
                                                         static_cast<std::size_t>(layout_.piece_size()));
  ChunkBuffer memory;
  for (std::uint64_t number = 0; number < there.size(); ++number) {
    PieceSums* const into = sums ? &*sums : nullptr;
    const bool added = there[number] < pieces
                           ? add_piece(into, number, layout_.piece_at(group, there[number]), memory)
                           : add_recovery(into, number, layout_.recovery_chunk(group, there[number] - pieces), memory);
    if (!added) sums.reset();
  }
  return sums;
}

void SurvivingPayload::hand_out(std::uint64_t piece, ByteView bytes, const LostChunks& sink) const {
  const std::uint64_t begin = chunks_.begin_of(layout_.first_chunk(piece));
  for (std::uint64_t chunk = layout_.first_chunk(piece); chunk < layout_.first_chunk(piece + 1); ++chunk) {
    if (!is_lost(chunk)) continue;
    const ByteView its =
        bytes.subspan(static_cast<std::size_t>(chunks_.begin_of(chunk) - begin), chunks_.size_of(chunk));
    const Digest& expected = digests_[static_cast<std::size_t>(chunk)];
    if (const Digest digest = digest_of(its, payload_.digest); digest != expected)
      throw Error(ErrorCode::Digest, {.what = "recovery data does not give what was signed, so it is of other bytes",
                                      .where = "chunk " + std::to_string(chunk),
                                      .expected = name_of(payload_.digest) + " " + expected.hex(),
                                      .got = name_of(payload_.digest) + " " + digest.hex(),
                                      .next = "do not use this bundle; tell who signed it"});
    sink(chunk, its);
  }
}

std::optional<Error> SurvivingPayload::rebuild(std::uint64_t index, const LostChunks& sink) {
  const std::uint64_t group = layout_.group_of(layout_.piece_of(index));
  for (;;) {
    const std::vector<std::uint64_t> lost = lost_of(group);
    if (const std::size_t help = help_of(group).size(); lost.size() > help)
      return Error(
          ErrorCode::Digest,
          {.what = "more is lost than recovery data mends",
           .where = "chunk " + std::to_string(index) + ", group " + std::to_string(group),
           .expected = "at most " + std::to_string(help) + " lost pieces, as many as there are recovery chunks",
           .got = std::to_string(lost.size()) + " lost pieces",
           .next = "copy what is damaged again from its source; " + std::to_string(lost.size() - help) +
                   " piece(s) of this group less are enough"});
    const std::optional<PieceSums> sums = sums_of(group, lost);
    if (!sums) continue;  // one more is lost now
    for (std::size_t i = 0; i < lost.size(); ++i) hand_out(layout_.piece_at(group, lost[i]), sums->result(i), sink);
    return std::nullopt;
  }
}

}  // namespace sealift::bundle
