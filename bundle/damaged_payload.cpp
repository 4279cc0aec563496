// SPDX-License-Identifier: Apache-2.0
// One look at everything, before anything is mended; what mends is payload/surviving_payload.
#include "sealift/bundle/damaged_payload.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "bundle/payload/surviving_payload.hpp"
#include "sealift/bundle/core/parallel_for.hpp"

namespace sealift::bundle {
namespace {

constexpr std::uint64_t kSurveyMemory = std::uint64_t{160} << 20;

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

struct DamagedPayload::State {
  State(const VerifiedBundle& bundle, const std::vector<std::filesystem::path>& folders)
      : payload(bundle.manifest().payload, bundle.payload().digests(), folders) {}

  SurvivingPayload payload;
};

std::string Damage::verdict() const {
  if (bad_chunks == 0) return bad_volumes.empty() ? "" : "every chunk is right somewhere, but volumes have a fault";
  const std::string bad = std::to_string(bad_chunks) + " of " + std::to_string(chunks) +
                          " chunks are lost or damaged (" + std::to_string(bad_bytes) + " bytes)";
  if (!has_recovery) return bad + ", and the bundle has no recovery data";
  if (mendable())
    return bad + "; recovery data mends them (up to " + std::to_string(parity) + " chunks of each of " +
           std::to_string(groups) + " groups)";
  return bad + "; recovery data does not mend them: " + std::to_string(lost_groups) + " of " + std::to_string(groups) +
         " groups lack " + std::to_string(missing_pieces) + " chunks more than can be made (" +
         std::to_string(recovery_there) + " of " + std::to_string(recovery_chunks) +
         " recovery chunks are here and right)";
}

DamagedPayload::DamagedPayload(const VerifiedBundle& bundle, std::vector<std::filesystem::path> folders)
    : state_(std::make_unique<State>(bundle, folders)) {}

DamagedPayload::~DamagedPayload() = default;

std::uint64_t DamagedPayload::bytes_to_survey() const {
  const SurvivingPayload& all = state_->payload;
  const bool reads_recovery = all.has_list() && all.has_recovery_file();
  return all.payload().size + (reads_recovery ? all.layout().recovery_chunks() * all.layout().piece_size() : 0);
}

Damage DamagedPayload::survey(unsigned threads, const std::function<void(std::uint64_t)>& progress) {
  SurvivingPayload& all = state_->payload;
  const Payload& payload = all.payload();
  const RecoveryLayout& layout = all.layout();
  threads = std::max(1u, std::min(threads, static_cast<unsigned>(kSurveyMemory / payload.chunk_size)));
  Damage damage{.chunks = all.chunks().count(), .has_recovery = payload.recovery.has_value()};
  if (damage.has_recovery)
    damage.groups = layout.groups(), damage.parity = layout.parity(), damage.recovery_chunks = layout.recovery_chunks();

  const auto bad = faults_of_all(threads, damage.chunks, [&](std::uint64_t index, ChunkBuffer& memory) {
    if (const std::uint64_t next = index + threads; next < damage.chunks)
      all.volumes().will_need(all.place(next), all.chunks().size_of(next));
    std::optional<Error> passed_over;
    std::optional<Error> fault = all.read(index, memory, &passed_over);
    all.set_lost(index, fault.has_value());
    if (progress) progress(all.chunks().size_of(index));
    return fault ? fault : passed_over;
  });
  std::vector<char> bad_volume(payload.volumes.size());
  add_faults(damage.faults, all.volumes(), bad_volume.size(), true);
  for (std::size_t file = 0; file < bad_volume.size(); ++file) bad_volume[file] = all.volumes().fault(file).has_value();
  for (const auto& [index, fault] : bad) {
    const std::size_t file = all.place(index).file;
    if (!all.volumes().fault(file)) damage.faults.push_back(fault);
    bad_volume[file] = 1;
    if (!all.is_lost(index)) continue;  // another copy has it
    ++damage.bad_chunks;
    damage.bad_bytes += all.chunks().size_of(index);
  }
  for (std::size_t file = 0; file < bad_volume.size(); ++file)
    if (bad_volume[file]) damage.bad_volumes.push_back(payload.volumes[file].name);

  if (all.has_recovery_file() && all.list_fault()) damage.faults.push_back(*all.list_fault());
  if (all.has_recovery_file() && !all.list_fault()) {
    const auto bad_recovery =
        faults_of_all(threads, layout.recovery_chunks(), [&](std::uint64_t index, ChunkBuffer& memory) {
          std::optional<Error> fault = all.read_recovery(index, memory);
          all.set_recovery_lost(index, fault.has_value());
          if (progress) progress(layout.piece_size());
          return fault;
        });
    add_faults(damage.faults, all.recovery(), payload.recovery->files.size(), false);
    for (const auto& [index, fault] : bad_recovery)
      if (!all.recovery().fault(all.recovery_place(index).file)) damage.faults.push_back(fault);
    damage.recovery_there = layout.recovery_chunks() - bad_recovery.size();
  }
  if (damage.bad_chunks == 0) return damage;
  for (std::uint64_t group = 0; group < layout.groups(); ++group)
    if (const std::uint64_t missing = all.missing_of(group); missing != 0)
      ++damage.lost_groups, damage.missing_pieces += missing;
  return damage;
}

bool DamagedPayload::read(std::uint64_t index, ChunkBuffer& memory) {
  SurvivingPayload& payload = state_->payload;
  payload.set_lost(index, payload.is_lost(index) || payload.read(index, memory));
  return !payload.is_lost(index);
}

void DamagedPayload::rebuild(std::uint64_t index, const std::function<void(std::uint64_t, ByteView)>& sink) {
  if (const std::optional<Error> fault = state_->payload.rebuild(index, sink)) throw *fault;
}

}  // namespace sealift::bundle
