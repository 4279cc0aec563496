// SPDX-License-Identifier: Apache-2.0
#include "sealift/bundle/payload/payload_reader.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "bundle/payload/chunk_mender.hpp"
#include "bundle/payload/open_volumes.hpp"
#include "bundle/payload/read_ahead.hpp"

namespace sealift::bundle {
namespace {

constexpr std::size_t kPiece = std::size_t{256} << 10;  // read and hashed while it is in the processor's cache
constexpr std::uint64_t kMaxAhead = std::uint64_t{24} << 20;
constexpr std::uint64_t kMaxKept = std::uint64_t{64} << 20;  // beyond it, a chunk is read again

// Where a byte of the payload is: the number of its volume, and the offset in it.
struct Place {
  std::size_t volume;
  std::uint64_t offset;
};

Place locate(const Payload& payload, std::uint64_t payload_offset) {
  std::size_t volume = 0;
  while (payload_offset >= payload.volumes[volume].size) payload_offset -= payload.volumes[volume++].size;
  return {volume, payload_offset};
}

// What else than another copy there is to do about a bad volume.
std::string remedy_of(const Payload& payload, const Mending& mending) {
  const std::string command = mending.command.empty() ? "sealift-install mend BUNDLE --into FOLDER" : mending.command;
  return payload.recovery ? ", or mend it from recovery data: " + command : "";
}

// A read error says what happened and not what to do. `not_mended`: why the chunk was not mended, if that was tried.
Error with_remedy(const Error& fault, const std::string& remedy, const std::optional<Error>& not_mended) {
  Facts facts = fault.facts();
  if (facts.next.empty() && !remedy.empty()) facts.next = "copy this volume again from its source" + remedy;
  if (not_mended) {
    const Facts& why = not_mended->facts();
    facts.next += " (it was not mended while it was read: " + why.what +
                  (why.expected.empty() ? "" : "; expected " + why.expected) +
                  (why.got.empty() ? "" : "; got " + why.got) + ")";
  }
  return {fault.code(), std::move(facts)};
}

// Calls `act` with each chunk that the range has bytes in.
template <class Act>
void for_each_chunk(const ChunkLayout& layout, std::uint64_t offset, std::uint64_t size, const Act& act) {
  if (size == 0) return;
  for (std::uint64_t index = layout.at(offset), last = layout.at(offset + size - 1); index <= last; ++index)
    act(static_cast<std::size_t>(index));
}

// A chunk that several expected ranges have bytes in, from its first reader on.
struct Kept {
  std::mutex reading;
  std::shared_ptr<const ChunkBuffer> bytes;
};

}  // namespace

struct PayloadReader::State {
  State(VolumeSources sources, const Payload& signed_payload, const ChunkLayout& its_layout,
        std::vector<Digest> digests)
      : payload(signed_payload),
        layout(its_layout),
        chunks(std::move(digests)),
        remedy(remedy_of(payload, sources.mending)),
        mender(mender_of(sources)),
        volumes(std::move(sources), payload.volumes, remedy),
        readers(chunks.size()),
        checked(chunks.size()) {
    if (volumes.first_fault() && !volumes.asks() && !(mender && mender->mends_what_is_cut_off()))
      throw *volumes.first_fault();
  }

  std::unique_ptr<ChunkMender> mender_of(const VolumeSources& sources) const {
    if (!sources.mending.while_reading || !payload.recovery) return nullptr;
    return std::make_unique<ChunkMender>(payload, chunks, sources.folders);
  }

  bool is_kept(std::uint64_t index) {
    const std::lock_guard lock(guard);
    return kept.contains(index);
  }

  // The chunk, or its beginning, where it was read ahead or can be read past the system's page cache.
  ReadAhead::Chunk first_read(const VolumeInput& file, const Place& place, std::uint64_t index, ChunkBuffer memory) {
    if (std::optional<ReadAhead::Chunk> ready = ahead.take(index, memory)) return std::move(*ready);
    memory.resize(layout.size_of(index));
    const bool past = file.passes_the_cache(place.offset, memory.size());
    const std::size_t filled = past ? file.read_past_the_cache(place.offset, memory) : 0;
    return {.bytes = std::move(memory), .filled = filled};
  }

  ChunkBuffer read(const VolumeInput& file, const Place& place, std::uint64_t index, ChunkBuffer memory) {
    auto [bytes, filled] = first_read(file, place, index, std::move(memory));
    const std::span<std::byte> all = bytes.all();
    Hasher hasher(payload.digest);
    for (std::size_t done = 0; done < all.size(); done += kPiece) {
      const std::size_t end = std::min(done + kPiece, all.size()), from = std::clamp(filled, done, end);
      if (from < end) file.read_exactly(place.offset + from, all.subspan(from, end - from));
      hasher.update(all.subspan(done, end - done));
    }
    if (const Digest digest = hasher.finish(); digest != chunks.at(index))
      throw Error(ErrorCode::Digest,
                  {.what = "chunk " + std::to_string(index) + " differs from what was signed",
                   .where = file.path().string() + " at offset " + std::to_string(place.offset),
                   .expected = name_of(payload.digest) + " " + chunks[index].hex(),
                   .got = name_of(payload.digest) + " " + digest.hex(),
                   .next = "copy " + payload.volumes[place.volume].name + " again from its source" + remedy});
    note_checked(index);
    return std::move(bytes);
  }

  void note_checked(std::uint64_t index) {
    if (!checked[static_cast<std::size_t>(index)].exchange(true)) ++checked_count;
  }

  // Chunk `index` from elsewhere, checked as any other; nothing, and why in `not_mended`. `was_read`: its volume has
  // the right size, and was wrong in it.
  std::optional<ChunkBuffer> mend(std::uint64_t index, std::size_t volume, bool was_read,
                                  std::optional<Error>& not_mended) {
    ChunkBuffer bytes;
    const bool somewhere = mender->read(index, bytes);
    if (!somewhere) not_mended = mender->mend(index, bytes);
    if (not_mended) return std::nullopt;
    if (digest_of(bytes.view(), payload.digest) != chunks.at(index))
      throw Error(ErrorCode::Digest, {.what = "a mended chunk changed in memory"});
    note_checked(index);
    const std::lock_guard lock(guard);
    std::set<std::uint64_t>& chunks_of_it = mended[volume];
    if (was_read || !somewhere) chunks_of_it.insert(index);
    return bytes;
  }

  // The next try finds another volume `number`, or this throws `fault`.
  void ask_for(std::size_t number, OpenVolumes::File bad, const Error& fault) {
    if (!volumes.asks()) throw Error(fault);
    if (mender) mender->close();
    bad ? volumes.replace(number, std::move(bad), fault) : static_cast<void>(volumes.get(number));
    if (mender) mender->look_in(volumes.folders());
  }

  const Payload& payload;
  const ChunkLayout& layout;
  const std::vector<Digest> chunks;
  const std::string remedy;
  const std::unique_ptr<ChunkMender> mender;  // nullptr: what is damaged is refused
  OpenVolumes volumes;
  ReadAhead ahead{static_cast<std::size_t>(std::max<std::uint64_t>(1, kMaxAhead / payload.chunk_size))};
  std::mutex guard;                    // of the next four
  std::vector<std::uint32_t> readers;  // by chunk: of the expected ranges that have bytes in it, and were not left
  std::map<std::uint64_t, std::shared_ptr<Kept>> kept;
  std::uint64_t kept_bytes = 0;
  std::map<std::size_t, std::set<std::uint64_t>> mended;  // by volume, its chunks
  std::vector<std::atomic<bool>> checked;                 // by chunk
  std::atomic<std::uint64_t> checked_count{0};
};

PayloadReader::PayloadReader(VolumeSources sources, Payload payload, std::vector<Digest> chunks)
    : payload_(std::move(payload)),
      layout_(payload_),
      state_(std::make_unique<State>(std::move(sources), payload_, layout_, std::move(chunks))) {}

PayloadReader::PayloadReader(const std::filesystem::path& folder, Payload payload, std::vector<Digest> chunks)
    : PayloadReader(VolumeSources{.folders = {folder}}, std::move(payload), std::move(chunks)) {}

PayloadReader::~PayloadReader() = default;

const std::vector<Digest>& PayloadReader::digests() const {
  return state_->chunks;
}

bool PayloadReader::all_there() const {
  return !state_->volumes.first_fault();
}

std::uint64_t PayloadReader::chunks_checked() const {
  return state_->checked_count;
}

// A damaged volume is mended before anybody is asked; a missing one may lie in another drive, so that is asked first.
ChunkBuffer PayloadReader::chunk(std::uint64_t index, ChunkBuffer memory) const {
  State& state = *state_;
  const Place place = locate(payload_, layout_.begin_of(index));
  for (;;) {
    std::optional<Error> fault, not_mended;
    OpenVolumes::File file =
        state.mender ? state.volumes.get_if_there(place.volume, fault) : state.volumes.get(place.volume);
    if (file) try {
        return state.read(*file, place, index, std::move(memory));
      } catch (const Error& error) {
        fault = error;
      }
    if (state.mender && !(fault->code() == ErrorCode::Missing && state.volumes.asks()))
      if (std::optional<ChunkBuffer> mended = state.mend(index, place.volume, file != nullptr, not_mended))
        return std::move(*mended);
    state.ask_for(place.volume, std::move(file), with_remedy(*fault, state.remedy, not_mended));
  }
}

std::vector<MendedVolume> PayloadReader::mended() const {
  const std::lock_guard lock(state_->guard);
  std::vector<MendedVolume> volumes;
  for (const auto& [volume, chunks] : state_->mended) {
    volumes.push_back({.name = payload_.volumes[volume].name, .chunks = chunks.size()});
    for (const std::uint64_t index : chunks) volumes.back().bytes += layout_.size_of(index);
  }
  return volumes;
}

bool PayloadReader::has_checked(std::uint64_t index) const {
  return state_->checked.at(static_cast<std::size_t>(index));
}

void PayloadReader::expect(std::uint64_t offset, std::uint64_t size) const {
  const std::lock_guard lock(state_->guard);
  for_each_chunk(layout_, offset, size, [&](std::size_t index) { ++state_->readers[index]; });
}

void PayloadReader::leave(std::uint64_t offset, std::uint64_t size) const {
  const std::lock_guard lock(state_->guard);
  for_each_chunk(layout_, offset, size, [&](std::size_t index) {
    if (state_->readers[index] == 0 || --state_->readers[index] != 0) return;
    const auto kept = state_->kept.find(index);
    if (kept == state_->kept.end()) return;
    if (kept->second->bytes) state_->kept_bytes -= kept->second->bytes->size();
    state_->kept.erase(kept);
  });
}

std::shared_ptr<const ChunkBuffer> PayloadReader::kept(std::uint64_t index, ChunkBuffer& memory) const {
  std::unique_lock lock(state_->guard);
  auto found = state_->kept.find(index);
  if (found == state_->kept.end()) {
    if (state_->readers[static_cast<std::size_t>(index)] < 2) return nullptr;
    found = state_->kept.emplace(index, std::make_shared<Kept>()).first;
  }
  const std::shared_ptr<Kept> kept = found->second;
  lock.unlock();
  const std::lock_guard reading(kept->reading);  // one thread reads, the others wait for it
  lock.lock();
  if (kept->bytes) return kept->bytes;
  lock.unlock();
  auto bytes = std::make_shared<const ChunkBuffer>(chunk(index, std::move(memory)));
  lock.lock();
  found = state_->kept.find(index);
  const bool wanted = found != state_->kept.end() && found->second == kept;
  if (wanted && state_->readers[static_cast<std::size_t>(index)] > 1 &&
      state_->kept_bytes + bytes->size() <= kMaxKept) {
    kept->bytes = bytes;
    state_->kept_bytes += bytes->size();
  }
  return bytes;
}

void PayloadReader::keep(std::uint64_t index, ChunkBuffer bytes) const {
  const std::size_t size = bytes.size();
  const auto kept = std::make_shared<Kept>();
  kept->bytes = std::make_shared<const ChunkBuffer>(std::move(bytes));
  const std::lock_guard lock(state_->guard);
  if (state_->readers[static_cast<std::size_t>(index)] == 0 || state_->kept_bytes + size > kMaxKept) return;
  if (!state_->kept.emplace(index, kept).second) return;  // somebody else has it, or is just reading it
  state_->kept_bytes += size;
}

void PayloadReader::will_need(std::uint64_t index) const {
  if (index >= layout_.count() || state_->is_kept(index)) return;
  const Place place = locate(payload_, layout_.begin_of(index));
  const std::size_t size = layout_.size_of(index);
  OpenVolumes::File file = state_->volumes.if_open(place.volume);
  if (!file) return;
  if (file->passes_the_cache(place.offset, size))
    state_->ahead.want(index, std::move(file), place.offset, size);
  else
    file->will_need(place.offset, size);
}

std::string PayloadReader::describe(std::uint64_t payload_offset) const {
  const Place place = locate(payload_, payload_offset);
  const OpenVolumes::File file = state_->volumes.if_open(place.volume);
  return (file ? file->path().string() : payload_.volumes[place.volume].name) + " at offset " +
         std::to_string(place.offset);
}

}  // namespace sealift::bundle
