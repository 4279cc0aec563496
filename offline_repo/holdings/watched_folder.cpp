// SPDX-License-Identifier: Apache-2.0
// Everything here is one rename or one link, so that a server that looks at any moment sees the old or the new state.
#include "offline_repo/holdings/watched_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <set>
#include <system_error>

#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/fields.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/output_file.hpp"
#include "sealift/bundle/manifest/manifest_json.hpp"
#include "sealift/bundle/open_bundle.hpp"

namespace sealift::offline_repo {

namespace {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

constexpr std::uint64_t kMaxSwitches = std::uint64_t{1} << 20;
constexpr std::size_t kMaxFiles =
    100'000;  // of a bundle's folder; a bundle has a few, and some thousand volumes at most

void append_stat(std::string& sight, const fs::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return;
  sight += path.filename().string() + ' ' + std::to_string(found.st_dev) + ' ' + std::to_string(found.st_ino) + ' ' +
           std::to_string(found.st_size) + ' ' + std::to_string(found.st_mtim.tv_sec) + '.' +
           std::to_string(found.st_mtim.tv_nsec) + '\n';
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

[[noreturn]] void throw_not_here(const fs::path& folder, const std::string& stem) {
  throw Error(ErrorCode::Missing, {.what = "there is no such bundle here",
                                   .where = folder.string(),
                                   .expected = "a folder or a link with " + stem + ".seal in it",
                                   .next = "sealift-repo add FOLDER BUNDLE"});
}

// Where the bundle lies in the folder.
fs::path find_bundle(const fs::path& folder, const std::string& stem) {
  std::error_code ignored;
  if (bundle::is_plain_name(stem))
    for (const fs::path& place : bundles_in(folder))
      if (fs::exists(place / (stem + std::string(bundle::kSealSuffix)), ignored)) return place;
  throw_not_here(folder, stem);
}

// As the seal says; nobody has verified it here.
bundle::Manifest claimed_manifest(const fs::path& place) {
  const bundle::OpenBundle opened = bundle::open(place);
  return bundle::parse_manifest(opened.seal.manifest.payload, opened.seal_path.filename().string());
}

// Nothing where the seal cannot be read: such a bundle is taken away all the same.
std::optional<bundle::Manifest> manifest_if_readable(const fs::path& place) {
  try {
    return claimed_manifest(place);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::set<bundle::Digest> carried_by(const std::vector<bundle::Manifest>& bundles) {
  std::set<bundle::Digest> carried;
  for (const bundle::Manifest& manifest : bundles)
    for (const bundle::Entry& entry : manifest.entries)
      if (!entry.absent) carried.insert(entry.sha256);
  return carried;
}

// Files are compared by their SHA-256, which a seal says; what content they have only verifying tells.
std::vector<DeltaAlone> deltas_without(const bundle::Manifest& gone, const std::vector<bundle::Manifest>& others) {
  const std::set<bundle::Digest> here = carried_by(others), went = carried_by({gone});
  std::vector<DeltaAlone> alone;
  for (const bundle::Manifest& manifest : others) {
    DeltaAlone delta{.stem = manifest.stem()};
    for (const bundle::Entry& entry : manifest.entries)
      if (entry.absent && went.contains(entry.sha256) && !here.contains(entry.sha256) && delta.files++ == 0)
        delta.first = entry.path.text();
    if (delta.files > 0) alone.push_back(std::move(delta));
  }
  return alone;
}

Removed without_version(const fs::path& folder, const fs::path& place) {
  const std::optional<bundle::Manifest> gone = manifest_if_readable(place);
  if (!gone) return {};
  Removed removed{.stream = {.channel = gone->channel, .name = gone->name}, .was_current = true};
  std::vector<bundle::Manifest> others;
  for (const fs::path& other : bundles_in(folder))
    if (auto manifest = other == place ? std::nullopt : manifest_if_readable(other); manifest)
      others.push_back(*std::move(manifest));
  std::map<std::uint64_t, std::string, std::greater<>> left;
  for (const bundle::Manifest& manifest : others)
    if (manifest.channel == gone->channel && manifest.name == gone->name) left[manifest.version] = manifest.stem();
  removed.deltas = deltas_without(*gone, others);
  for (const auto& [version, stem] : left) removed.left.push_back(stem);
  const Switches switches = read_switches(folder);
  if (const auto found = switches.find(removed.stream); found != switches.end()) removed.switched = found->second;
  removed.was_current =
      removed.switched ? *removed.switched == gone->version : left.empty() || left.begin()->first < gone->version;
  return removed;
}

void write_switches(const fs::path& folder, const Switches& switches) {
  std::string text;
  for (const auto& [stream, version] : switches) text += stream.text() + " " + std::to_string(version) + "\n";
  const fs::path fresh = folder / ("." + std::string(kSwitches) + "." + std::to_string(::getpid()));
  std::error_code ignored;
  fs::remove(fresh, ignored);
  bundle::write_text(fresh, text);
  if (::rename(fresh.c_str(), (folder / kSwitches).c_str()) != 0)
    bundle::throw_errno("the switches cannot be written", folder / kSwitches);
}

}  // namespace

std::vector<fs::path> bundles_in(const fs::path& folder) {
  struct stat found {};
  if (::stat(folder.c_str(), &found) != 0) bundle::throw_errno("the folder of bundles cannot be read", folder);
  if ((found.st_mode & S_IWOTH) != 0)
    throw Error(ErrorCode::Usage, {.what = "everybody on this machine may change which bundles are served",
                                   .where = folder.string(),
                                   .expected = "a folder that others cannot write to",
                                   .next = "chmod o-w '" + folder.string() + "'"});
  std::error_code error;
  std::vector<fs::path> places;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const std::string name = it->path().filename().string();
    if (!name.starts_with('.') && fs::is_directory(it->path(), ignored)) places.push_back(it->path());
  }
  if (error) bundle::throw_errno("the folder of bundles cannot be read", folder, error.value());
  std::sort(places.begin(), places.end());
  return places;
}

std::string sight_of(const fs::path& folder_or_seal) {
  std::error_code error;
  const bool is_folder = fs::is_directory(folder_or_seal, error);
  const fs::path folder = is_folder ? folder_or_seal : folder_or_seal.parent_path();
  std::vector<fs::path> files;
  for (fs::directory_iterator it(folder.empty() ? "." : folder, error), end; !error && it != end; it.increment(error))
    if (files.push_back(it->path()); files.size() > kMaxFiles) break;
  std::sort(files.begin(), files.end());
  std::string sight;
  for (const fs::path& file : files) append_stat(sight, file);
  return sight;
}

Switches parse_switches(std::string_view text, const std::string& where) {
  Switches switches;
  for (std::size_t begin = 0, number = 1; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.empty()) continue;
    const std::size_t slash = std::min(line.find('/'), line.size()), space = std::min(line.find(' '), line.size());
    const bool whole = slash < space && space < line.size();
    const std::optional<std::uint64_t> version = whole ? number_in(line.substr(space + 1)) : std::nullopt;
    bundle::Stream stream;
    if (version)
      stream = {.channel = std::string(line.substr(0, slash)),
                .name = std::string(line.substr(slash + 1, space - slash - 1))};
    if (!version || !bundle::is_plain_name(stream.channel) || !bundle::is_plain_name(stream.name) ||
        !switches.emplace(stream, *version).second)
      throw Error(ErrorCode::Format,
                  {.what = "this is no switch, or a second one of its bundle",
                   .where = where + ":" + std::to_string(number),
                   .expected = "CHANNEL/NAME VERSION",
                   .next = "sealift-repo switch writes this file; without it the newest are served"});
  }
  return switches;
}

Switches read_switches(const fs::path& folder) {
  const fs::path path = folder / kSwitches;
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0 && errno == ENOENT) return {};
  return parse_switches(bundle::read_text(path, kMaxSwitches), path.string());
}

fs::path add_bundle(const fs::path& folder, const fs::path& bundle) {
  bundles_in(folder);
  const bundle::OpenBundle opened = bundle::open(bundle);
  fs::path link = folder / opened.seal_path.stem();
  if (::symlink(fs::canonical(opened.folder).c_str(), link.c_str()) == 0) return link;
  if (errno != EEXIST) bundle::throw_errno("the bundle cannot be linked", link);
  throw Error(ErrorCode::Conflict, {.what = "something has this name here",
                                    .where = link.string(),
                                    .next = "sealift-repo status says what is served; remove it first to replace it"});
}

Removed remove_bundle(const fs::path& folder, const std::string& stem) {
  const fs::path place = find_bundle(folder, stem);
  if (!fs::is_symlink(place))
    throw Error(ErrorCode::Conflict, {.what = "this is the bundle itself, and no link to it",
                                      .where = place.string(),
                                      .next = "move it out of this folder, or delete it; that is left to you"});
  Removed removed = without_version(folder, place);
  std::error_code ignored;
  removed.bundle = fs::canonical(place, ignored);
  if (::unlink(place.c_str()) != 0) bundle::throw_errno("the link cannot be taken away", place);
  return removed;
}

void switch_bundle(const fs::path& folder, const std::string& stem, bool newest) {
  const bundle::Manifest manifest = claimed_manifest(find_bundle(folder, stem));
  const bundle::Stream stream{.channel = manifest.channel, .name = manifest.name};
  Switches switches = read_switches(folder);
  if (newest)
    switches.erase(stream);
  else
    switches[stream] = manifest.version;
  write_switches(folder, switches);
}

}  // namespace sealift::offline_repo
