// SPDX-License-Identifier: Apache-2.0
// The rules that one field of a manifest has for another, group by group; see manifest_check.hpp.
#include "sealift/bundle/manifest/manifest_check.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "bundle/core/json_object.hpp"
#include "bundle/core/unicode.hpp"
#include "sealift/bundle/manifest/chunk_layout.hpp"
#include "sealift/bundle/manifest/recovery_layout.hpp"

namespace sealift::bundle {
namespace {

// Few enough chunks of a fair size, in volumes that are named in order, hold whole chunks and add up.
void check_payload(const Payload& payload, const std::string& stem, const std::string& where) {
  if (payload.chunk_size < kMinChunkSize || !std::has_single_bit(payload.chunk_size))
    refuse_json(where, "the chunk size must be a power of two from 4 KiB to 16 MiB",
                std::to_string(payload.chunk_size));
  const ChunkLayout layout(payload);
  if (layout.count() > kMaxChunks)
    refuse_json(where, "at most 2097152 chunks are read; a larger chunk_size makes fewer",
                std::to_string(layout.count()) + " chunks");
  std::uint64_t left = payload.size;
  std::size_t count = 0;
  for (const Volume& volume : payload.volumes) {
    char number[16];
    std::snprintf(number, sizeof number, ".vol%03zu", ++count);
    if (volume.name != stem + number)
      refuse_json(where + ".volumes", "volumes must be named in order", SafePath::printable(volume.name));
    if (volume.size > left) refuse_json(where + ".volumes", "the volumes hold more than the payload", volume.name);
    left -= volume.size;
    const std::uint64_t end = payload.size - left;
    if (volume.size == 0 || (left != 0 && layout.begin_of(layout.at(end)) != end))
      refuse_json(where + ".volumes", "a volume must hold whole chunks", volume.name);
  }
  if (left != 0 || payload.size == 0) refuse_json(where, "the volumes do not add up to the payload's size");
}

// Groups that the code can hold, in memory that a reader has, and files that are named in order and hold whole chunks.
void check_recovery(const Payload& payload, const std::string& stem, const std::string& where) {
  if (!payload.recovery) return;
  const Recovery& recovery = *payload.recovery;
  if (const std::string fault = fault_of(payload, recovery); !fault.empty())
    refuse_json(where, fault, std::to_string(recovery.groups) + " groups, parity " + std::to_string(recovery.parity));
  const RecoveryLayout layout(payload, recovery);
  std::uint64_t left = layout.recovery_chunks();
  std::size_t count = 0;
  for (const Volume& file : recovery.files) {
    char number[16];
    std::snprintf(number, sizeof number, ".rec%03zu", ++count);
    if (file.name != stem + number)
      refuse_json(where + ".files", "recovery files must be named in order", SafePath::printable(file.name));
    const std::uint64_t chunks = file.size / layout.piece_size();
    if (chunks == 0 || chunks > left || chunks * layout.piece_size() != file.size)
      refuse_json(where + ".files", "a recovery file must hold whole recovery chunks", std::to_string(file.size));
    left -= chunks;
  }
  if (left != 0) refuse_json(where + ".files", "recovery chunks are missing", std::to_string(left));
}

// Sorted, unique even where upper and lower case are one, no path below a file, sums that no counter overflows, and
// blobs that are either the same or apart.
void check_entries(const std::vector<Entry>& entries, const std::string& where) {
  std::map<std::uint64_t, const Entry*> by_offset;
  std::map<std::string, const Entry*> by_name;
  std::uint64_t bytes = 0, files = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    if (i > 0 && !(entries[i - 1].path < entry.path))
      refuse_json(where, "entries must be sorted by path and unique", entry.path.text());
    if (const auto [twin, fresh] = by_name.emplace(case_folded(entry.path.text()), &entry); !fresh)
      refuse_json(where, "two paths differ in upper and lower case only",
                  twin->second->path.text() + " and " + entry.path.text());
    bytes += entry.installed_size;
    files += entry.installed_files;
    if (bytes > kMaxPayloadSize || files > kMaxEntries)
      refuse_json(where, "the entries are too large together once they are installed", entry.path.text());
    if (entry.build != WheelBuild::None && entry.kind != EntryKind::Wheel)
      refuse_json(where + "[" + std::to_string(i) + "]", "only a wheel says how it was built", entry.path.text());
    if (entry.absent) continue;
    if (entry.encoding == Encoding::Identity &&
        (entry.size != entry.stored_size || entry.sha256 != entry.stored_sha256))
      refuse_json(where + "[" + std::to_string(i) + "]", "an entry stored as it is must have equal sizes and digests",
                  entry.path.text());
    if (entry.encoding == Encoding::Patch && entry.kind != EntryKind::Wheel)
      refuse_json(where + "[" + std::to_string(i) + "]", "only a wheel is carried as a patch", entry.path.text());
    const auto [twin, fresh] = by_offset.emplace(entry.offset, &entry);
    if (!fresh &&
        (twin->second->stored_size != entry.stored_size || twin->second->stored_sha256 != entry.stored_sha256))
      refuse_json(where, "two entries overlap in the payload", entry.path.text());
  }
  for (const auto& [name, entry] : by_name)
    for (std::size_t slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1))
      if (by_name.contains(name.substr(0, slash)))
        refuse_json(where, "an entry lies below another entry", entry->path.text());
  std::uint64_t end = 0;
  for (const auto& [offset, entry] : by_offset) {
    if (offset < end) refuse_json(where, "two entries overlap in the payload", entry->path.text());
    end = offset + entry->stored_size;
  }
}

// One at most, carried as it is in whole blocks, and nobody installs it; the root hash is of this kind alone.
void check_image(const std::vector<Entry>& entries, const std::string& where) {
  constexpr std::uint64_t kBlock = 4096;  // of dm-verity and of loop devices
  const Entry* first = nullptr;
  for (const Entry& entry : entries) {
    const std::string& path = entry.path.text();
    if (entry.verity.has_value() != (entry.kind == EntryKind::Squashfs))
      refuse_json(where, "an image, and nothing else, has a root hash for dm-verity (verity)", path);
    if (entry.kind != EntryKind::Squashfs) continue;
    if (first != nullptr)
      refuse_json(where, "a bundle carries one image of its environment", first->path.text() + " and " + path);
    first = &entry;
    if (entry.absent || entry.encoding != Encoding::Identity)
      refuse_json(where, "an image is carried as it is, since programs read it where it lies", path);
    if (entry.size == 0 || entry.size % kBlock != 0)
      refuse_json(where, "an image consists of whole blocks of 4096 bytes", path + ", " + std::to_string(entry.size));
    if (entry.installed_size != 0 || entry.installed_files != 0 || entry.executable)
      refuse_json(where, "an image is mounted, and not installed", path);
  }
}

// Of a bundle without a base, what is absent is in the image that it carries, since it is placed.
std::set<SafePath> placed_in_image(const Manifest& manifest) {
  std::set<SafePath> placed;
  if (manifest.base || manifest.image() == nullptr) return placed;
  for (const Environment::Placement& placement : manifest.environment.placements) placed.insert(placement.entry);
  return placed;
}

// What is left to a store and the base that has it come together, and the level says what the manifest uses.
void check_level(const Manifest& manifest, const std::string& where) {
  const std::set<SafePath> in_image = placed_in_image(manifest);
  const auto left = std::find_if(manifest.entries.begin(), manifest.entries.end(), [&](const Entry& entry) {
    return entry.absent ? !in_image.contains(entry.path) : entry.encoding == Encoding::Patch;
  });
  if (manifest.base.has_value() != (left != manifest.entries.end()))
    refuse_json(where, "an entry is absent, or a patch, exactly in a delta, which names its base",
                manifest.base ? "a base and no absent entry or patch" : left->path.text());
  if (const std::uint64_t needed = needed_installer_level(manifest); manifest.installer_level < needed)
    refuse_json(where + ".installer_level", "it uses what installers below level " + std::to_string(needed) + " lack",
                std::to_string(manifest.installer_level));
}

// Each placement is of an entry that is there, has a place where its kind needs one, and no other file has that place.
void check_placements(const Manifest& manifest, const std::string& where) {
  std::map<std::string, std::string> places;  // without upper and lower case -> as written
  for (const Environment::Placement& placement : manifest.environment.placements) {
    const Entry* entry = manifest.find(placement.entry);
    if (entry == nullptr) refuse_json(where, "a placement names an entry that is not there", placement.entry.text());
    if (entry->kind == EntryKind::Squashfs)
      refuse_json(where, "an image is mounted, and not placed", placement.entry.text());
    if (!placement.left_out.empty() && entry->kind != EntryKind::Wheel)
      refuse_json(where, "only files of a wheel are left out", placement.entry.text());
    if (!placement.shared.empty() && entry->kind != EntryKind::Wheel)
      refuse_json(where, "only a wheel shares a package", placement.entry.text());
    if (case_folded(placement.into.substr(0, placement.into.find('/'))) == kGenerationRecord)
      refuse_json(where, "a place is reserved for the installer", placement.into);
    if (placement.into.empty() != (entry->kind == EntryKind::Wheel) && entry->kind != EntryKind::Tree)
      refuse_json(where, "a file needs a place, a wheel must have none", placement.entry.text());
    if (entry->kind != EntryKind::File) continue;
    const auto [twin, fresh] = places.emplace(case_folded(placement.into), placement.into);
    if (!fresh) refuse_json(where, "two files have one place", twin->second + " and " + placement.into);
  }
}

// A companion must not be taken for another file of the folder.
void check_companion_names(const Manifest& manifest, const std::string& where) {
  std::set<std::string> names;
  for (const Companion& companion : manifest.companions) {
    const std::string name = case_folded(companion.name);
    if (!names.insert(name).second || name.starts_with(case_folded(manifest.stem()) + "."))
      refuse_json(where, "a companion has the name of another file of the bundle", companion.name);
  }
}

}  // namespace

void check_manifest(const Manifest& manifest, const std::string& where) {
  if (manifest.rollback_floor > manifest.version)
    refuse_json(where + ".rollback_floor", "a bundle's rollback floor is above its own version",
                std::to_string(manifest.rollback_floor));
  check_entries(manifest.entries, where + ".entries");  // first: where chunks begin depends on them
  check_image(manifest.entries, where + ".entries");
  check_payload(manifest.payload, manifest.stem(), where + ".payload");
  check_recovery(manifest.payload, manifest.stem(), where + ".payload.recovery");
  check_placements(manifest, where + ".environment.placements");
  check_level(manifest, where);
  check_companion_names(manifest, where + ".companions");
}

}  // namespace sealift::bundle
