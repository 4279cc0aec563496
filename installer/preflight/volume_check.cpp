// SPDX-License-Identifier: Apache-2.0
// Reads the volume as a file of its own: a PayloadReader wants the right size before it reads a byte, and here a disc
// that is cut short, or cannot be read in places, is to tell all that is wrong with it in one pass.
#include "installer/preflight/volume_check.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>

#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/parallel_for.hpp"
#include "sealift/bundle/manifest/recovery_layout.hpp"
#include "sealift/bundle/payload/bundle_folder.hpp"

namespace sealift::installer {

namespace {

using bundle::Entry;
using bundle::Error;
using bundle::ErrorCode;

// The file, and which chunks of the payload, or which recovery chunks, it holds.
struct VolumePlace {
  bundle::Volume file;
  std::size_t number = 0;  // from 1
  std::size_t files = 0;   // of its kind
  bool recovery = false;
  std::uint64_t begin = 0;  // offset in the payload, or in all recovery chunks
  std::uint64_t first = 0;  // chunks [first, end)
  std::uint64_t end = 0;
  std::function<std::uint64_t(std::uint64_t)> begin_of = {};  // of a chunk, offset as `begin`
  std::vector<bundle::Digest> digests = {};                   // of all chunks, as they were signed

  std::size_t size_of(std::uint64_t index) const {
    return static_cast<std::size_t>(begin_of(index + 1) - begin_of(index));
  }
};

// Nothing when none of these files has this name.
std::optional<VolumePlace> place_among(const std::vector<bundle::Volume>& files, const std::string& name) {
  std::uint64_t begin = 0;
  for (std::size_t index = 0; index < files.size(); begin += files[index++].size)
    if (files[index].name == name)
      return VolumePlace{.file = files[index], .number = index + 1, .files = files.size(), .begin = begin};
  return std::nullopt;
}

std::optional<VolumePlace> place_of_volume(const std::string& name, const bundle::PayloadReader& payload) {
  std::optional<VolumePlace> place = place_among(payload.payload().volumes, name);
  if (!place) return place;
  const bundle::ChunkLayout& layout = payload.layout();
  place->first = layout.from(place->begin);
  place->end = layout.from(place->begin + place->file.size);
  place->begin_of = [&layout](std::uint64_t index) { return layout.begin_of(index); };
  place->digests = payload.digests();
  return place;
}

// The list of recovery chunks lies beside the seal.
std::optional<VolumePlace> place_of_recovery(const std::string& name, const bundle::VerifiedBundle& bundle) {
  const bundle::Payload& payload = bundle.manifest().payload;
  if (!payload.recovery) return std::nullopt;
  std::optional<VolumePlace> place = place_among(payload.recovery->files, name);
  if (!place) return place;
  const std::uint64_t size = bundle::RecoveryLayout(payload, *payload.recovery).piece_size();
  place->recovery = true;
  place->first = place->begin / size;
  place->end = place->first + place->file.size / size;
  place->begin_of = [size](std::uint64_t index) { return index * size; };
  const std::string list = bundle.manifest().stem() + std::string(bundle::kRecoverySuffix);
  place->digests = bundle::read_recovery_list(bundle.folder() / list, payload);
  return place;
}

VolumePlace place_of(const std::string& name, const bundle::VerifiedBundle& bundle, const std::string& where) {
  if (std::optional<VolumePlace> place = place_of_volume(name, bundle.payload())) return *place;
  if (std::optional<VolumePlace> place = place_of_recovery(name, bundle)) return *place;
  const std::vector<bundle::Volume>& volumes = bundle.manifest().payload.volumes;
  throw Error(ErrorCode::Conflict, {.what = "the bundle has no volume of this name",
                                    .where = where,
                                    .expected = volumes.front().name + " to " + volumes.back().name,
                                    .got = bundle::SafePath::printable(name),
                                    .next = "name the folder of the bundle that this volume is of"});
}

// Carried entries by offset. They do not overlap unless they are stored in the same bytes, so their ends are sorted
// too.
std::vector<const Entry*> in_payload_order(const bundle::Manifest& manifest) {
  std::vector<const Entry*> entries;
  for (const Entry& entry : manifest.entries)
    if (!entry.absent && entry.stored_size != 0) entries.push_back(&entry);
  std::stable_sort(entries.begin(), entries.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
  return entries;
}

std::vector<std::string> owners_of(const std::vector<const Entry*>& entries, std::uint64_t begin, std::uint64_t end) {
  auto one = std::partition_point(entries.begin(), entries.end(),
                                  [&](const Entry* entry) { return entry->offset + entry->stored_size <= begin; });
  std::vector<std::string> paths;
  for (; one != entries.end() && (*one)->offset < end; ++one) paths.push_back((*one)->path.text());
  return paths;
}

std::string listed(const std::vector<std::string>& paths) {
  constexpr std::size_t kShown = 8;
  if (paths.empty()) return "bytes of no entry";
  std::string text = "bytes of ";
  for (std::size_t i = 0; i < std::min(paths.size(), kShown); ++i)
    text += (i == 0 ? "" : ", ") + bundle::SafePath::printable(paths[i]);
  return text + (paths.size() > kShown ? " and " + std::to_string(paths.size() - kShown) + " more" : "");
}

// What is wrong with one chunk.
struct BadChunk {
  ErrorCode code = ErrorCode::Digest;
  std::string what;  // "differ from what was signed"
  std::string got;
};

using BadChunks = std::map<std::uint64_t, BadChunk>;  // by chunk

Error fault_of(const BadRange& range, const BadChunk& chunk, const VolumeCheck& check) {
  const std::string last = std::to_string(range.first_chunk + range.chunks - 1);
  const std::string kind = check.recovery ? "recovery chunk" : "chunk";
  const std::string which =
      range.chunks == 1 ? kind + " " + last : kind + "s " + std::to_string(range.first_chunk) + " to " + last;
  return {chunk.code,
          {.what = which + ": " + chunk.what,
           .where = check.file.string() + ", bytes " + std::to_string(range.offset) + " to " +
                    std::to_string(range.offset + range.size - 1),
           .expected = listed(range.entries),
           .got = chunk.got,
           .next = "copy " + check.volume + " again from its source"}};
}

class VolumeReading {
 public:
  VolumeReading(const VolumePlace& place, bundle::DigestAlgorithm algorithm, const bundle::InputFile& file,
                bundle::Progress& progress)
      : place_(place), algorithm_(algorithm), file_(file), progress_(progress) {}

  BadChunks read(unsigned threads) {
    bundle::parallel_for(threads, static_cast<std::size_t>(place_.end - place_.first), [&](std::size_t i) {
      const std::uint64_t index = place_.first + i;
      if (begin_of(index + 1) > file_.size()) return note(index, {.what = "cut off", .got = "the end of the file"});
      if (index + threads < place_.end) file_.will_need(begin_of(index + threads), place_.size_of(index + threads));
      try {
        compare(index);
      } catch (const Error& error) {
        note(index, {.code = error.code(), .what = "cannot be read", .got = error.facts().got});
      }
      progress_.add(place_.size_of(index));
    });
    return std::move(bad_);
  }

 private:
  std::uint64_t begin_of(std::uint64_t index) const { return place_.begin_of(index) - place_.begin; }

  void compare(std::uint64_t index) {
    thread_local bundle::ChunkBuffer memory;  // new pages for each chunk would cost time
    file_.read_exactly(begin_of(index), memory.resize(place_.size_of(index)));
    if (digest_of(memory.view(), algorithm_) != place_.digests[static_cast<std::size_t>(index)])
      note(index, {.what = "not what was signed", .got = {}});
  }

  void note(std::uint64_t index, BadChunk chunk) {
    const std::lock_guard lock(guard_);
    bad_.emplace(index, std::move(chunk));
  }

  const VolumePlace& place_;
  const bundle::DigestAlgorithm algorithm_;
  const bundle::InputFile& file_;
  bundle::Progress& progress_;
  std::mutex guard_;
  BadChunks bad_;
};

// Neighbours that are bad for one reason become one range.
std::vector<BadRange> ranges_of(const BadChunks& bad, const bundle::VerifiedBundle& bundle, const VolumePlace& place,
                                const VolumeCheck& check) {
  const std::vector<const Entry*> entries =
      place.recovery ? std::vector<const Entry*>{} : in_payload_order(bundle.manifest());
  std::vector<BadRange> ranges;
  for (auto first = bad.begin(); first != bad.end();) {
    auto last = first, next = std::next(first);
    while (next != bad.end() && next->first == last->first + 1 && next->second.what == first->second.what)
      last = next++;
    const std::uint64_t begin = place.begin_of(first->first), end = place.begin_of(last->first + 1);
    BadRange range{.offset = begin - place.begin,
                   .size = end - begin,
                   .first_chunk = first->first,
                   .chunks = last->first + 1 - first->first,
                   .entries = owners_of(entries, begin, end),
                   .fault = Error(first->second.code, {})};
    range.fault = fault_of(range, first->second, check);
    ranges.push_back(std::move(range));
    first = next;
  }
  return ranges;
}

}  // namespace

std::vector<Error> VolumeCheck::failures() const {
  std::vector<Error> all;
  if (wrong_size) all.push_back(*wrong_size);
  for (const BadRange& range : bad) all.push_back(range.fault);
  return all;
}

VolumeCheck check_volume(bundle::OpenBundle opened, const std::filesystem::path& file, const bundle::Trust& trust,
                         bundle::Time now, unsigned threads, bundle::Progress& progress) {
  // Nobody brings the other volumes, and nothing here reads them: their places stay empty.
  opened.ask = [](const bundle::Volume&, const Error&) { return std::nullopt; };
  const bundle::VerifiedBundle bundle = bundle::verify(opened, trust, now);
  const bundle::Manifest& manifest = bundle.manifest();
  const VolumePlace place = place_of(file.filename().string(), bundle, file.string());
  const bundle::Volume& volume = place.file;
  const bundle::InputFile input(file);
  VolumeCheck check{.name = manifest.name,
                    .version = manifest.version,
                    .channel = manifest.channel,
                    .identity = bundle.identity(),
                    .root = bundle.root_name(),
                    .warnings = bundle.warnings(),
                    .volume = volume.name,
                    .file = file,
                    .recovery = place.recovery,
                    .number = place.number,
                    .volumes = place.files,
                    .chunks = place.end - place.first,
                    .bytes = volume.size,
                    .wrong_size = std::nullopt,
                    .bad = {}};
  if (input.size() != volume.size)
    check.wrong_size = Error(ErrorCode::Digest, {.what = "a volume is cut short or too long",
                                                 .where = file.string(),
                                                 .expected = std::to_string(volume.size) + " bytes",
                                                 .got = std::to_string(input.size()) + " bytes",
                                                 .next = "copy " + volume.name + " again from its source"});
  progress.begin("verifying " + volume.name, volume.size);
  const BadChunks bad = VolumeReading(place, manifest.payload.digest, input, progress).read(threads);
  progress.end();
  check.bad = ranges_of(bad, bundle, place, check);
  return check;
}

}  // namespace sealift::installer
