// SPDX-License-Identifier: Apache-2.0
// A piece is lost when one of its chunks is; a group's lost pieces come from as many others and recovery chunks as it
// has pieces. What turns out to be lost only then is remembered, and the group is tried again without it.
#include "sealift/bundle/damaged_payload.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "bundle/payload/reed_solomon.hpp"
#include "bundle/payload/surviving_files.hpp"
#include "sealift/bundle/core/parallel_for.hpp"
#include "sealift/bundle/manifest/recovery_layout.hpp"
#include "sealift/bundle/payload/bundle_folder.hpp"

namespace sealift::bundle {
namespace {

constexpr std::uint64_t kSurveyMemory = std::uint64_t{160} << 20;

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

}  // namespace

struct DamagedPayload::State {
  State(const VerifiedBundle& bundle, const std::vector<std::filesystem::path>& folders)
      : payload(bundle.manifest().payload),
        chunks(payload),
        digests(bundle.payload().digests()),
        layout(payload, recovery_or_none(payload)),
        volumes(folders, payload.volumes),
        recovery(folders, payload.recovery ? payload.recovery->files : std::vector<Volume>{}),
        volume_ends(ends_of(payload.volumes)),
        recovery_ends(payload.recovery ? ends_of(payload.recovery->files) : std::vector<std::uint64_t>{}),
        lost(digests.size()),
        lost_recovery(static_cast<std::size_t>(layout.recovery_chunks()), 1) {
    if (payload.recovery) find_list(bundle.manifest().stem() + std::string(kRecoverySuffix), folders);
  }

  bool has_recovery_file() const {
    for (std::size_t file = 0; file < recovery_ends.size(); ++file)
      if (!recovery.fault(file) || recovery.is_there(file) || recovery.fault(file)->code() != ErrorCode::Missing)
        return true;
    return false;
  }

  void find_list(const std::string& name, const std::vector<std::filesystem::path>& folders) {
    for (const std::filesystem::path& folder : folders) try {
        recovery_digests = read_recovery_list(folder / name, payload);
        list_fault.reset();
        return;
      } catch (const Error& fault) {
        if (!list_fault) list_fault = fault;
      }
  }

  SignedRange place(std::uint64_t chunk) const {
    return range_at(volume_ends, chunks.begin_of(chunk), digests[static_cast<std::size_t>(chunk)]);
  }
  SignedRange recovery_place(std::uint64_t chunk) const {
    return range_at(recovery_ends, chunk * layout.piece_size(), recovery_digests[static_cast<std::size_t>(chunk)]);
  }

  std::optional<Error> read(std::uint64_t chunk, ChunkBuffer& memory,
                            std::optional<Error>* passed_over = nullptr) const {
    return volumes.read(place(chunk), memory.resize(chunks.size_of(chunk)), payload.digest,
                        "chunk " + std::to_string(chunk), passed_over);
  }
  std::optional<Error> read_recovery(std::uint64_t chunk, ChunkBuffer& memory) const {
    return recovery.read(recovery_place(chunk), memory.resize(static_cast<std::size_t>(layout.piece_size())),
                         payload.digest, "recovery chunk " + std::to_string(chunk));
  }

  bool is_lost(std::uint64_t piece) const {
    const auto at = [&](std::uint64_t index) { return lost.begin() + static_cast<std::ptrdiff_t>(index); };
    return std::any_of(at(layout.first_chunk(piece)), at(layout.first_chunk(piece + 1)), [](char bad) { return bad; });
  }
  // Positions in the group.
  std::vector<std::uint64_t> lost_of(std::uint64_t group) const {
    std::vector<std::uint64_t> positions;
    for (std::uint64_t position = 0; position < layout.pieces_of(group); ++position)
      if (is_lost(layout.piece_at(group, position))) positions.push_back(position);
    return positions;
  }
  // Numbers of the group's recovery chunks that are there.
  std::vector<std::uint64_t> help_of(std::uint64_t group) const {
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t number = 0; number < layout.parity(); ++number)
      if (!lost_recovery[static_cast<std::size_t>(layout.recovery_chunk(group, number))]) numbers.push_back(number);
    return numbers;
  }

  bool add_piece(PieceSums& sums, std::uint64_t number, std::uint64_t piece, ChunkBuffer& memory);
  bool add_recovery(PieceSums& sums, std::uint64_t number, std::uint64_t chunk, ChunkBuffer& memory);
  std::optional<PieceSums> sums_of(std::uint64_t group, const std::vector<std::uint64_t>& lost_positions);
  void hand_out(std::uint64_t piece, ByteView bytes, const std::function<void(std::uint64_t, ByteView)>& sink) const;

  const Payload payload;
  const ChunkLayout chunks;
  const std::vector<Digest> digests;
  const RecoveryLayout layout;
  const SurvivingFiles volumes;
  const SurvivingFiles recovery;
  const std::vector<std::uint64_t> volume_ends;
  const std::vector<std::uint64_t> recovery_ends;
  std::vector<Digest> recovery_digests = {};  // empty: no right list was found
  std::optional<Error> list_fault = {};
  std::vector<char> lost;           // by chunk
  std::vector<char> lost_recovery;  // by recovery chunk
};

namespace {

// Calls `read` with each number and memory of its thread, and returns the faults by number.
template <class Read>
std::map<std::uint64_t, Error> faults_of_all(unsigned threads, std::uint64_t count, const Read& read) {
  std::mutex guard;
  std::map<std::uint64_t, Error> faults;
  parallel_for(threads, static_cast<std::size_t>(count), [&](std::size_t index) {
    thread_local ChunkBuffer memory;
    if (const std::optional<Error> fault = read(index, memory)) {
      const std::lock_guard lock(guard);
      faults.emplace(index, *fault);
    }
  });
  return faults;
}

// A file that is missing as a whole is one fault, not one for each of its chunks.
void add_faults(std::vector<Error>& out, const SurvivingFiles& files, std::size_t count, bool missing_too) {
  for (std::size_t file = 0; file < count; ++file)
    if (const std::optional<Error>& fault = files.fault(file);
        fault && (missing_too || files.is_there(file) || fault->code() != ErrorCode::Missing))
      out.push_back(*fault);
}

}  // namespace

std::string Damage::verdict() const {
  if (bad_chunks == 0) return bad_volumes.empty() ? "" : "every chunk is right somewhere, but volumes have a fault";
  const std::string bad = std::to_string(bad_chunks) + " of " + std::to_string(chunks) + " chunks are damaged (" +
                          std::to_string(bad_bytes) + " bytes)";
  if (!has_recovery) return bad + ", and the bundle has no recovery data";
  if (mendable())
    return bad + "; recovery data mends them (up to " + std::to_string(parity) + " pieces of each of " +
           std::to_string(groups) + " groups)";
  return bad + "; recovery data does not mend them: " + std::to_string(lost_groups) + " of " + std::to_string(groups) +
         " groups lack " + std::to_string(missing_pieces) + " pieces more than are there (" +
         std::to_string(recovery_there) + " of " + std::to_string(recovery_chunks) + " recovery chunks are right)";
}

DamagedPayload::DamagedPayload(const VerifiedBundle& bundle, std::vector<std::filesystem::path> folders)
    : state_(std::make_unique<State>(bundle, folders)) {}

DamagedPayload::~DamagedPayload() = default;

std::uint64_t DamagedPayload::bytes_to_survey() const {
  const bool reads_recovery = !state_->recovery_digests.empty() && state_->has_recovery_file();
  return state_->payload.size + (reads_recovery ? state_->recovery_ends.back() : 0);
}

Damage DamagedPayload::survey(unsigned threads, const std::function<void(std::uint64_t)>& progress) {
  State& state = *state_;
  const RecoveryLayout& layout = state.layout;
  threads = std::max(1u, std::min(threads, static_cast<unsigned>(kSurveyMemory / state.payload.chunk_size)));
  Damage damage{.chunks = state.chunks.count(), .has_recovery = state.payload.recovery.has_value()};
  if (damage.has_recovery)
    damage.groups = layout.groups(), damage.parity = layout.parity(), damage.recovery_chunks = layout.recovery_chunks();

  const auto bad = faults_of_all(threads, damage.chunks, [&](std::uint64_t index, ChunkBuffer& memory) {
    if (const std::uint64_t next = index + threads; next < damage.chunks)
      state.volumes.will_need(state.place(next), state.chunks.size_of(next));
    std::optional<Error> passed_over;
    std::optional<Error> fault = state.read(index, memory, &passed_over);
    state.lost[static_cast<std::size_t>(index)] = fault.has_value();
    if (progress) progress(state.chunks.size_of(index));
    return fault ? fault : passed_over;
  });
  std::vector<char> bad_volume(state.payload.volumes.size());
  add_faults(damage.faults, state.volumes, bad_volume.size(), true);
  for (std::size_t file = 0; file < bad_volume.size(); ++file) bad_volume[file] = state.volumes.fault(file).has_value();
  for (const auto& [index, fault] : bad) {
    const std::size_t file = state.place(index).file;
    if (!state.volumes.fault(file)) damage.faults.push_back(fault);
    bad_volume[file] = 1;
    if (!state.lost[static_cast<std::size_t>(index)]) continue;  // another copy has it
    ++damage.bad_chunks;
    damage.bad_bytes += state.chunks.size_of(index);
  }
  for (std::size_t file = 0; file < bad_volume.size(); ++file)
    if (bad_volume[file]) damage.bad_volumes.push_back(state.payload.volumes[file].name);

  if (state.has_recovery_file() && state.list_fault) damage.faults.push_back(*state.list_fault);
  if (state.has_recovery_file() && !state.list_fault) {
    const auto bad_recovery =
        faults_of_all(threads, layout.recovery_chunks(), [&](std::uint64_t index, ChunkBuffer& memory) {
          std::optional<Error> fault = state.read_recovery(index, memory);
          state.lost_recovery[static_cast<std::size_t>(index)] = fault.has_value();
          if (progress) progress(layout.piece_size());
          return fault;
        });
    add_faults(damage.faults, state.recovery, state.recovery_ends.size(), false);
    for (const auto& [index, fault] : bad_recovery)
      if (!state.recovery.fault(state.recovery_place(index).file)) damage.faults.push_back(fault);
    damage.recovery_there = layout.recovery_chunks() - bad_recovery.size();
  }
  if (damage.bad_chunks == 0) return damage;
  for (std::uint64_t group = 0; group < layout.groups(); ++group)
    if (const std::uint64_t lost = state.lost_of(group).size(), help = state.help_of(group).size(); lost > help)
      ++damage.lost_groups, damage.missing_pieces += lost - help;
  return damage;
}

bool DamagedPayload::read(std::uint64_t index, ChunkBuffer& memory) {
  char& lost = state_->lost[static_cast<std::size_t>(index)];
  lost = lost || state_->read(index, memory);
  return !lost;
}

bool DamagedPayload::State::add_piece(PieceSums& sums, std::uint64_t number, std::uint64_t piece, ChunkBuffer& memory) {
  std::size_t offset = 0;
  for (std::uint64_t chunk = layout.first_chunk(piece); chunk < layout.first_chunk(piece + 1); ++chunk) {
    if (read(chunk, memory)) {
      lost[static_cast<std::size_t>(chunk)] = 1;
      return false;
    }
    sums.add(number, offset, memory.view());
    offset += memory.size();
  }
  return true;
}

bool DamagedPayload::State::add_recovery(PieceSums& sums, std::uint64_t number, std::uint64_t chunk,
                                         ChunkBuffer& memory) {
  if (read_recovery(chunk, memory)) {
    lost_recovery[static_cast<std::size_t>(chunk)] = 1;
    return false;
  }
  sums.add(number, 0, memory.view());
  return true;
}

// Nothing when something that was right before could not be read any more.
std::optional<PieceSums> DamagedPayload::State::sums_of(std::uint64_t group,
                                                        const std::vector<std::uint64_t>& lost_positions) {
  const std::uint64_t pieces = layout.pieces_of(group);
  std::vector<std::uint64_t> there;
  for (std::uint64_t position = 0; position < pieces; ++position)
    if (!std::binary_search(lost_positions.begin(), lost_positions.end(), position)) there.push_back(position);
  for (const std::uint64_t number : help_of(group))
    if (there.size() < pieces) there.push_back(pieces + number);
  PieceSums sums = PieceSums::lost_pieces(pieces, layout.parity(), there, lost_positions,
                                          static_cast<std::size_t>(layout.piece_size()));
  ChunkBuffer memory;
  for (std::uint64_t number = 0; number < there.size(); ++number) {
    const bool added = there[number] < pieces
                           ? add_piece(sums, number, layout.piece_at(group, there[number]), memory)
                           : add_recovery(sums, number, layout.recovery_chunk(group, there[number] - pieces), memory);
    if (!added) return std::nullopt;
  }
  return sums;
}

void DamagedPayload::State::hand_out(std::uint64_t piece, ByteView bytes,
                                     const std::function<void(std::uint64_t, ByteView)>& sink) const {
  const std::uint64_t begin = chunks.begin_of(layout.first_chunk(piece));
  for (std::uint64_t chunk = layout.first_chunk(piece); chunk < layout.first_chunk(piece + 1); ++chunk) {
    if (!lost[static_cast<std::size_t>(chunk)]) continue;
    const ByteView its = bytes.subspan(static_cast<std::size_t>(chunks.begin_of(chunk) - begin), chunks.size_of(chunk));
    const Digest& expected = digests[static_cast<std::size_t>(chunk)];
    if (const Digest digest = digest_of(its, payload.digest); digest != expected)
      throw Error(ErrorCode::Digest, {.what = "recovery data does not give what was signed, so it is of other bytes",
                                      .where = "chunk " + std::to_string(chunk),
                                      .expected = name_of(payload.digest) + " " + expected.hex(),
                                      .got = name_of(payload.digest) + " " + digest.hex(),
                                      .next = "do not use this bundle; tell who signed it"});
    sink(chunk, its);
  }
}

void DamagedPayload::rebuild(std::uint64_t index, const std::function<void(std::uint64_t, ByteView)>& sink) {
  State& state = *state_;
  const std::uint64_t group = state.layout.group_of(state.layout.piece_of(index));
  for (;;) {
    const std::vector<std::uint64_t> lost = state.lost_of(group);
    if (const std::size_t help = state.help_of(group).size(); lost.size() > help)
      throw Error(ErrorCode::Digest,
                  {.what = "more is lost than recovery data mends",
                   .where = "chunk " + std::to_string(index) + ", group " + std::to_string(group),
                   .expected = "at most " + std::to_string(help) + " lost pieces, as many as there are recovery chunks",
                   .got = std::to_string(lost.size()) + " lost pieces",
                   .next = "copy what is damaged again from its source; " + std::to_string(lost.size() - help) +
                           " piece(s) of this group less are enough"});
    const std::optional<PieceSums> sums = state.sums_of(group, lost);
    if (!sums) continue;  // one more is lost now
    for (std::size_t i = 0; i < lost.size(); ++i)
      state.hand_out(state.layout.piece_at(group, lost[i]), sums->result(i), sink);
    return;
  }
}

}  // namespace sealift::bundle
