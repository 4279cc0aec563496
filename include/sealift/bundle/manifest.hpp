// SPDX-License-Identifier: Apache-2.0
// The manifest: a plain value that says everything about a bundle, with its one parser and its one writer.
// It is parsed only after its signature held; even so every number is bounded and every path is a SafePath.
#pragma once

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/json.hpp"
#include "sealift/bundle/safe_path.hpp"
#include "sealift/bundle/target.hpp"
#include "sealift/bundle/time.hpp"

namespace sealift::bundle {

inline constexpr std::uint64_t kFormatVersion = 1;
inline constexpr std::uint64_t kInstallerLevel = 2;  // grows when bundles need something that older installers lack
inline constexpr std::uint64_t kDefaultChunkSize = std::uint64_t{4} << 20;
inline constexpr std::uint64_t kMinChunkSize = std::uint64_t{4} << 10;
inline constexpr std::uint64_t kMaxChunkSize = std::uint64_t{16} << 20;  // readers hold a chunk a thread
inline constexpr std::uint64_t kMaxPayloadSize = std::uint64_t{1} << 50;
inline constexpr std::uint64_t kMaxChunks = std::uint64_t{2} << 20;  // their list is read whole: 64 MiB
inline constexpr std::size_t kMaxEntries = 5'000'000;
inline constexpr std::size_t kMaxVolumes = 10'000;
// The installer's own file in the root of every generation; no entry may be placed there.
inline constexpr std::string_view kGenerationRecord = "generation.json";

enum class EntryKind {
  Wheel,  // a Python wheel as it was published; unpacked into site-packages
  Tree,   // a tar archive of files and links; unpacked into a folder of the environment
  File,   // one file, such as a program
};

enum class Encoding {
  Identity,  // stored as it is
  Zstd,      // stored as one zstd frame
};

// One named item of the payload. Its stored bytes are payload[offset, offset + stored_size).
struct Entry {
  SafePath path = SafePath::parse("unnamed", "");
  EntryKind kind = EntryKind::File;
  std::uint64_t size = 0;  // bytes after decoding
  Digest sha256;           // of those
  Encoding encoding = Encoding::Identity;
  std::uint64_t offset = 0;
  std::uint64_t stored_size = 0;
  Digest stored_sha256;               // of the stored bytes: the blob's name in the payload
  std::uint64_t installed_size = 0;   // bytes on disk once unpacked, each file rounded up to 4 KiB
  std::uint64_t installed_files = 0;  // files, folders and links once unpacked
  bool executable = false;            // for a File
  bool absent = false;  // of a delta: the target's store has it; encoding, offset and stored_* say nothing

  bool operator==(const Entry&) const = default;
};

struct Volume {
  std::string name;
  std::uint64_t size = 0;  // bytes; a multiple of the chunk size, but for the last volume

  bool operator==(const Volume&) const = default;
};

struct Payload {
  std::uint64_t size = 0;
  std::uint64_t chunk_size = kDefaultChunkSize;
  DigestAlgorithm digest = DigestAlgorithm::Sha256;  // of every chunk and of their list
  Digest chunk_list_digest;
  std::vector<Volume> volumes;

  std::uint64_t chunk_count() const { return (size + chunk_size - 1) / chunk_size; }
  bool operator==(const Payload&) const = default;
};

// A file that travels beside the bundle, outside the payload: the installer itself.
struct Companion {
  std::string name;
  std::uint64_t size = 0;
  Digest sha256;

  bool operator==(const Companion&) const = default;
};

// glibc's loader and libraries, which a bundle may bring where the target's are too old: they lie in lib/runtime, and
// sealift-start starts the interpreter and the programs through them. Of the target only its kernel counts then.
struct CarriedRuntime {
  GlibcVersion glibc = {};
  std::string kernel = {};  // the oldest one that this glibc runs on: "3.2.0"

  bool operator==(const CarriedRuntime&) const = default;
};

// How the entries make a Python prefix. Paths are relative to the root of the generation.
struct Environment {
  struct Placement {
    SafePath entry;
    std::string into;  // for a Tree the folder ("" = the root), for a File its path; empty for a Wheel
    // Of a Wheel: files, by their place below the root, that another entry owns. Sorted.
    std::vector<SafePath> left_out = {};

    bool operator==(const Placement&) const = default;
  };

  SafePath interpreter = SafePath::parse("bin/python3", "");
  SafePath site_packages = SafePath::parse("lib/python3/site-packages", "");
  std::vector<Placement> placements;  // in the order they are made
  std::vector<std::string> imports;   // modules that the self-test imports
  std::optional<CarriedRuntime> runtime;

  bool operator==(const Environment&) const = default;
};

struct Manifest {
  std::string name;
  std::string channel;
  std::uint64_t version = 0;
  std::string created;  // RFC 3339, UTC
  Target target;
  GlibcVersion glibc_floor;           // what the carried ELF files really need; never above what they run with
  std::uint64_t installer_level = 1;  // at least needed_installer_level
  std::uint64_t rollback_floor = 0;
  std::string driver_floor;    // the oldest driver of NVIDIA's that the carried CUDA runs with; empty: nobody said
  std::optional<Digest> base;  // of a delta, which has absent entries: the inventory that it was made for
  Payload payload;
  std::vector<Entry> entries;  // sorted by path
  Environment environment;
  std::vector<Companion> companions;

  // NAME-VERSION, the stem of every file name.
  std::string stem() const { return name + "-" + std::to_string(version); }
  const Entry* find(const SafePath& path) const {
    const auto found = std::lower_bound(entries.begin(), entries.end(), path,
                                        [](const Entry& entry, const SafePath& wanted) { return entry.path < wanted; });
    return found != entries.end() && found->path == path ? &*found : nullptr;
  }
  bool operator==(const Manifest&) const = default;
};

// What an installer must know beyond the first one: bundles that use nothing new (0) go on to be read by older ones.
inline std::uint64_t needed_installer_level(const Manifest& manifest) {
  const auto& placements = manifest.environment.placements;
  const bool leaves_out = std::any_of(placements.begin(), placements.end(),
                                      [](const auto& placement) { return !placement.left_out.empty(); });
  return manifest.base || leaves_out || manifest.environment.runtime || !manifest.driver_floor.empty() ? 2 : 0;
}

// A bundle's or key's name: starts with a letter or digit, then letters, digits, '.', '_', '-'; at most 100.
inline bool is_plain_name(std::string_view text) {
  const auto alnum = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= 100 && alnum(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return alnum(c) || c == '.' || c == '_' || c == '-'; });
}

namespace detail {

inline constexpr std::pair<EntryKind, std::string_view> kKindNames[] = {
    {EntryKind::Wheel, "wheel"}, {EntryKind::Tree, "tree"}, {EntryKind::File, "file"}};
inline constexpr std::pair<Encoding, std::string_view> kEncodingNames[] = {{Encoding::Identity, "identity"},
                                                                           {Encoding::Zstd, "zstd"}};

template <class Enum, std::size_t N>
std::string enum_name(const std::pair<Enum, std::string_view> (&names)[N], Enum value) {
  for (const auto& [candidate, name] : names)
    if (candidate == value) return std::string(name);
  return "?";
}

template <class Enum, std::size_t N>
Enum enum_value(const std::pair<Enum, std::string_view> (&names)[N], const std::string& text,
                const std::string& where) {
  for (const auto& [value, name] : names)
    if (name == text) return value;
  throw Error(ErrorCode::CannotCheck, {.what = "the manifest uses a word that this version does not know",
                                       .where = where,
                                       .got = SafePath::printable(text),
                                       .next = "use the sealift-install that came with the bundle"});
}

inline std::string plain_name(JsonObject& object, const std::string& key) {
  std::string text = object.string(key, 100);
  if (!is_plain_name(text))
    refuse_json(object.where() + "." + key, "a plain name was expected", SafePath::printable(text));
  return text;
}

inline GlibcVersion glibc_version(JsonObject& object, const std::string& key) {
  const std::string text = object.string(key, 20);
  const std::optional<GlibcVersion> version = GlibcVersion::parse(text);
  if (!version)
    refuse_json(object.where() + "." + key, "a version such as 2.36 was expected", SafePath::printable(text));
  return *version;
}

// One to four numbers, such as "525.60.13".
inline std::string dotted_version(JsonObject& object, const std::string& key) {
  std::string text = object.string(key, 39);
  std::size_t numbers = 1, digits = 0;
  const bool good = std::all_of(text.begin(), text.end(), [&](char c) {
    if (c == '.' && digits > 0) return digits = 0, ++numbers <= 4;
    return c >= '0' && c <= '9' && ++digits <= 9;
  });
  if (!good || digits == 0)
    refuse_json(object.where() + "." + key, "a version such as 525.60.13 was expected", SafePath::printable(text));
  return text;
}

inline CarriedRuntime parse_runtime(JsonObject object) {
  CarriedRuntime runtime{.glibc = glibc_version(object, "glibc"), .kernel = dotted_version(object, "kernel")};
  object.done();
  return runtime;
}

inline Entry parse_entry(const Json& json, const std::string& where, const Payload& payload) {
  JsonObject object(json, where);
  Entry entry;
  entry.path = SafePath::parse(object.string("path"), where + ".path");
  entry.kind = enum_value(kKindNames, object.string("kind", 20), where + ".kind");
  entry.size = object.integer("size", kMaxPayloadSize);
  entry.sha256 = object.digest("sha256");
  entry.absent = object.has("absent");
  if (entry.absent && !object.boolean("absent"))
    refuse_json(where + ".absent", "true was expected, or no such key", entry.path.text());
  if (!entry.absent) {
    entry.encoding = enum_value(kEncodingNames, object.string("encoding", 20), where + ".encoding");
    entry.offset = object.integer("offset", payload.size);
    entry.stored_size = object.integer("stored_size", payload.size - entry.offset);
    entry.stored_sha256 = object.digest("stored_sha256");
  }
  entry.installed_size = object.integer("installed_size", kMaxPayloadSize);
  entry.installed_files = object.integer("installed_files", kMaxEntries);
  entry.executable = object.boolean("executable");
  object.done();
  if (!entry.absent && entry.encoding == Encoding::Identity &&
      (entry.size != entry.stored_size || entry.sha256 != entry.stored_sha256))
    refuse_json(where, "an entry stored as it is must have equal sizes and digests", entry.path.text());
  return entry;
}

inline Payload parse_payload(JsonObject object, const std::string& stem) {
  Payload payload;
  payload.size = object.integer("size", kMaxPayloadSize);
  payload.chunk_size = object.integer("chunk_size", kMaxChunkSize);
  if (payload.chunk_size < kMinChunkSize || !std::has_single_bit(payload.chunk_size))
    refuse_json(object.where(), "the chunk size must be a power of two from 4 KiB to 16 MiB",
                std::to_string(payload.chunk_size));
  if (payload.chunk_count() > kMaxChunks)
    refuse_json(object.where(), "at most 2097152 chunks are read; a larger chunk_size makes fewer",
                std::to_string(payload.chunk_count()) + " chunks");
  const std::string name = object.string("digest", 20);
  const std::optional<DigestAlgorithm> algorithm = digest_algorithm(name);
  if (!algorithm)
    throw Error(ErrorCode::CannotCheck,
                {.what = "the chunks are digested with an algorithm that this version does not know",
                 .where = object.where(),
                 .expected = "sha256 or sm3",
                 .got = SafePath::printable(name)});
  payload.digest = *algorithm;
  payload.chunk_list_digest = object.digest("chunk_list_digest");
  std::uint64_t left = payload.size;
  for (const Json& json : object.array("volumes", kMaxVolumes)) {
    JsonObject item(json, object.where() + ".volumes");
    Volume volume{.name = item.string("name", 255), .size = item.integer("size", left)};
    item.done();
    char number[16];
    std::snprintf(number, sizeof number, ".vol%03zu", payload.volumes.size() + 1);
    if (volume.name != stem + number)
      refuse_json(item.where(), "volumes must be named in order", SafePath::printable(volume.name));
    left -= volume.size;
    if (volume.size == 0 || (left != 0 && volume.size % payload.chunk_size != 0))
      refuse_json(item.where(), "a volume must hold whole chunks", volume.name);
    payload.volumes.push_back(std::move(volume));
  }
  object.done();
  if (left != 0 || payload.size == 0) refuse_json(object.where(), "the volumes do not add up to the payload's size");
  return payload;
}

inline std::vector<SafePath> parse_left_out(JsonObject& placement) {
  const std::string where = placement.where() + ".left_out";
  std::vector<SafePath> paths;
  for (const Json& json : placement.array("left_out", kMaxEntries)) {
    if (!json.is_string()) refuse_json(where, "a path was expected", json.type_name());
    paths.push_back(SafePath::parse(json.get<std::string>(), where));
    if (paths.size() > 1 && !(paths[paths.size() - 2] < paths.back()))
      refuse_json(where, "paths must be sorted and unique", paths.back().text());
  }
  if (paths.empty()) refuse_json(where, "a path was expected, or no such key");
  return paths;
}

inline Environment parse_environment(JsonObject object, const Manifest& manifest) {
  Environment environment;
  environment.interpreter = SafePath::parse(object.string("interpreter"), object.where() + ".interpreter");
  environment.site_packages = SafePath::parse(object.string("site_packages"), object.where() + ".site_packages");
  std::map<std::string, std::string> places;  // without upper and lower case -> as written
  for (const Json& json : object.array("placements", kMaxEntries)) {
    JsonObject item(json, object.where() + ".placements");
    Environment::Placement placement{.entry = SafePath::parse(item.string("entry"), item.where() + ".entry"),
                                     .into = item.string("into")};
    if (item.has("left_out")) placement.left_out = parse_left_out(item);
    item.done();
    const Entry* entry = manifest.find(placement.entry);
    if (entry == nullptr)
      refuse_json(item.where(), "a placement names an entry that is not there", placement.entry.text());
    if (!placement.left_out.empty() && entry->kind != EntryKind::Wheel)
      refuse_json(item.where(), "only files of a wheel are left out", placement.entry.text());
    if (!placement.into.empty()) SafePath::parse(placement.into, item.where() + ".into");
    if (case_folded(placement.into.substr(0, placement.into.find('/'))) == kGenerationRecord)
      refuse_json(item.where(), "a place is reserved for the installer", placement.into);
    if (placement.into.empty() != (entry->kind == EntryKind::Wheel) && entry->kind != EntryKind::Tree)
      refuse_json(item.where(), "a file needs a place, a wheel must have none", placement.entry.text());
    if (entry->kind == EntryKind::File) {
      const auto [twin, fresh] = places.emplace(case_folded(placement.into), placement.into);
      if (!fresh) refuse_json(item.where(), "two files have one place", twin->second + " and " + placement.into);
    }
    environment.placements.push_back(std::move(placement));
  }
  for (const Json& json : object.array("imports", 1000)) {
    const bool plain = json.is_string() && is_plain_name(json.get_ref<const std::string&>());
    if (!plain) refuse_json(object.where() + ".imports", "a module name was expected", json.dump().substr(0, 80));
    environment.imports.push_back(json.get<std::string>());
  }
  if (object.has("runtime")) environment.runtime = parse_runtime(object.object("runtime"));
  object.done();
  return environment;
}

// Sorted, unique even where upper and lower case are one, no path below a file, sums that no counter overflows, and
// blobs that are either the same or apart.
inline void check_entries(const std::vector<Entry>& entries, const std::string& where) {
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
    if (entry.absent) continue;
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

// Absent entries and the base that has them come together, and the level says what the manifest uses.
inline void check_level(const Manifest& manifest, const std::string& where) {
  const auto absent =
      std::find_if(manifest.entries.begin(), manifest.entries.end(), [](const Entry& entry) { return entry.absent; });
  if (manifest.base.has_value() != (absent != manifest.entries.end()))
    refuse_json(where, "an entry is absent exactly in a delta, which names its base",
                manifest.base ? "a base and no absent entry" : absent->path.text());
  if (const std::uint64_t needed = needed_installer_level(manifest); manifest.installer_level < needed)
    refuse_json(where + ".installer_level", "it uses what installers below level " + std::to_string(needed) + " lack",
                std::to_string(manifest.installer_level));
}

// A companion must not be taken for another file of the folder.
inline void check_last_companion(const Manifest& manifest, const std::string& where) {
  const std::string name = case_folded(manifest.companions.back().name);
  const bool taken = std::any_of(manifest.companions.begin(), manifest.companions.end() - 1,
                                 [&](const Companion& other) { return case_folded(other.name) == name; });
  if (taken || name.starts_with(case_folded(manifest.stem()) + "."))
    refuse_json(where, "a companion has the name of another file of the bundle", manifest.companions.back().name);
}

}  // namespace detail

// Throws Format or CannotCheck; `where` is the seal's file name.
inline Manifest parse_manifest(std::string_view text, const std::string& where) {
  const Json root = parse_json(text, where);
  JsonObject object(root, where);
  if (const std::uint64_t format = object.integer("format"); format != kFormatVersion)
    throw Error(ErrorCode::CannotCheck, {.what = "the bundle is of a format that this version does not know",
                                         .where = where,
                                         .expected = std::to_string(kFormatVersion),
                                         .got = std::to_string(format),
                                         .next = "use the sealift-install that came with the bundle"});
  Manifest manifest;
  manifest.installer_level = object.integer("installer_level");
  if (manifest.installer_level > kInstallerLevel)
    throw Error(ErrorCode::CannotCheck, {.what = "the bundle needs a newer installer",
                                         .where = where,
                                         .expected = "level " + std::to_string(manifest.installer_level),
                                         .got = "level " + std::to_string(kInstallerLevel),
                                         .next = "use the sealift-install that came with the bundle"});
  manifest.name = detail::plain_name(object, "name");
  manifest.channel = detail::plain_name(object, "channel");
  manifest.version = object.integer("version");
  manifest.created = object.string("created", 40);
  if (!parse_time(manifest.created))
    detail::refuse_json(where + ".created", "a time such as 2026-01-31T12:00:00Z was expected",
                        SafePath::printable(manifest.created));
  manifest.rollback_floor = object.integer("rollback_floor");
  if (manifest.rollback_floor > manifest.version)
    detail::refuse_json(where + ".rollback_floor", "a bundle's rollback floor is above its own version",
                        std::to_string(manifest.rollback_floor));
  JsonObject target = object.object("target");
  manifest.target.arch = detail::plain_name(target, "arch");
  manifest.target.glibc = detail::glibc_version(target, "glibc");
  manifest.glibc_floor = detail::glibc_version(target, "glibc_floor");
  if (target.has("driver_floor")) manifest.driver_floor = detail::dotted_version(target, "driver_floor");
  target.done();
  manifest.payload = detail::parse_payload(object.object("payload"), manifest.stem());
  for (const Json& json : object.array("entries", kMaxEntries))
    manifest.entries.push_back(detail::parse_entry(
        json, where + ".entries[" + std::to_string(manifest.entries.size()) + "]", manifest.payload));
  detail::check_entries(manifest.entries, where + ".entries");
  manifest.environment = detail::parse_environment(object.object("environment"), manifest);
  if (object.has("base")) manifest.base = object.digest("base");
  detail::check_level(manifest, where);
  for (const Json& json : object.array("companions", 16)) {
    JsonObject item(json, where + ".companions");
    manifest.companions.push_back({.name = detail::plain_name(item, "name"),
                                   .size = item.integer("size", std::uint64_t{1} << 32),
                                   .sha256 = item.digest("sha256")});
    item.done();
    detail::check_last_companion(manifest, item.where());
  }
  object.done();
  if (write_json(root) != text) detail::refuse_json(where, "it is not spelled as it was written");
  return manifest;
}

// Deterministic: the same value gives the same bytes.
inline std::string write_manifest(const Manifest& manifest) {
  Json entries = Json::array();
  for (const Entry& entry : manifest.entries) {
    Json item = {{"path", entry.path.text()},
                 {"kind", detail::enum_name(detail::kKindNames, entry.kind)},
                 {"size", entry.size},
                 {"sha256", entry.sha256.hex()},
                 {"installed_size", entry.installed_size},
                 {"installed_files", entry.installed_files},
                 {"executable", entry.executable}};
    if (entry.absent) {
      item["absent"] = true;
    } else {
      item["encoding"] = detail::enum_name(detail::kEncodingNames, entry.encoding);
      item["offset"] = entry.offset;
      item["stored_size"] = entry.stored_size;
      item["stored_sha256"] = entry.stored_sha256.hex();
    }
    entries.push_back(std::move(item));
  }
  Json volumes = Json::array();
  for (const Volume& volume : manifest.payload.volumes)
    volumes.push_back({{"name", volume.name}, {"size", volume.size}});
  Json placements = Json::array();
  for (const Environment::Placement& placement : manifest.environment.placements) {
    placements.push_back({{"entry", placement.entry.text()}, {"into", placement.into}});
    for (const SafePath& path : placement.left_out) placements.back()["left_out"].push_back(path.text());
  }
  Json companions = Json::array();
  for (const Companion& companion : manifest.companions)
    companions.push_back({{"name", companion.name}, {"size", companion.size}, {"sha256", companion.sha256.hex()}});
  Json json = {{"format", kFormatVersion},
               {"installer_level", manifest.installer_level},
               {"name", manifest.name},
               {"channel", manifest.channel},
               {"version", manifest.version},
               {"created", manifest.created},
               {"rollback_floor", manifest.rollback_floor},
               {"target",
                {{"arch", manifest.target.arch},
                 {"glibc", manifest.target.glibc.text()},
                 {"glibc_floor", manifest.glibc_floor.text()}}},
               {"payload",
                {{"size", manifest.payload.size},
                 {"chunk_size", manifest.payload.chunk_size},
                 {"digest", name_of(manifest.payload.digest)},
                 {"chunk_list_digest", manifest.payload.chunk_list_digest.hex()},
                 {"volumes", std::move(volumes)}}},
               {"entries", std::move(entries)},
               {"environment",
                {{"interpreter", manifest.environment.interpreter.text()},
                 {"site_packages", manifest.environment.site_packages.text()},
                 {"placements", std::move(placements)},
                 {"imports", manifest.environment.imports}}},
               {"companions", std::move(companions)}};
  if (manifest.base) json["base"] = manifest.base->hex();
  if (!manifest.driver_floor.empty()) json["target"]["driver_floor"] = manifest.driver_floor;
  if (const std::optional<CarriedRuntime>& runtime = manifest.environment.runtime)
    json["environment"]["runtime"] = {{"glibc", runtime->glibc.text()}, {"kernel", runtime->kernel}};
  return write_json(json);
}

}  // namespace sealift::bundle
