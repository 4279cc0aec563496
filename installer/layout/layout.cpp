// SPDX-License-Identifier: Apache-2.0
// Also makes each wheel's RECORD, whose rows are paths relative to site-packages, which only the environment knows.
// Source: packaging.python.org, "Recording installed projects".
#include "installer/layout/layout.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "bundle/wheel/wheel_startup.hpp"
#include "sealift/bundle/archive/archive_tree.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/own_places.hpp"
#include "sealift/bundle/wheel/installed_path.hpp"
#include "sealift/bundle/wheel/wheel_places.hpp"

namespace sealift::installer {

using bundle::EntryKind;
using bundle::Error;
using bundle::ErrorCode;

namespace {

[[noreturn]] void refuse_second_owner(const std::string& path, const Place& first, const Place& second) {
  throw Error(ErrorCode::Conflict, {.what = "two entries of the bundle claim one path",
                                    .where = bundle::SafePath::printable(path),
                                    .expected = "one owner",
                                    .got = first.origin->owner + " and " + second.origin->owner,
                                    .next = "leave one of them out of the job file, or say [[owner]] there, and pack "
                                            "again"});
}

[[noreturn]] void refuse_left_out(const std::string& wheel, const std::string& path, const std::string& why) {
  throw Error(ErrorCode::Format, {.what = "the bundle leaves out a file of a wheel, " + why,
                                  .where = wheel,
                                  .expected = "a file of this wheel that another entry brings",
                                  .got = bundle::SafePath::printable(path),
                                  .next = "this bundle was not made by sealift-pack; do not use it"});
}

[[noreturn]] void refuse_place(const std::string& entry, const std::string& path, ErrorCode code,
                               const std::string& why, const std::string& next) {
  throw Error(code, {.what = "an entry would lie where it must not: " + why,
                     .where = entry,
                     .got = bundle::SafePath::printable(path),
                     .next = next});
}

Place place_of_type(Place::Type type, std::shared_ptr<const Place::Origin> origin) {
  Place place;
  place.type = type;
  place.origin = std::move(origin);
  return place;
}

// A path as RECORD names it: "torch/version.py", "../../../bin/torchrun". As text, since parsing tens of thousands of
// them as filesystem::path would cost more than making their names.
std::string relative_to(std::string_view folder, std::string_view path) {
  if (path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/')
    return std::string(path.substr(folder.size() + 1));
  std::size_t shared = 0;  // length of the common beginning, with its last slash
  for (std::size_t i = 0; i < std::min(folder.size(), path.size()) && folder[i] == path[i]; ++i)
    if (path[i] == '/') shared = i + 1;
  std::string out = "../";
  for (const char c : folder.substr(shared))
    if (c == '/') out += "../";
  return out.append(path.substr(shared));
}

std::string place_of(const bundle::Environment& environment, const UnpackedEntry& unpacked, const std::string& stored) {
  if (unpacked.entry->kind == EntryKind::Wheel)
    return place_of_wheel_file(environment, unpacked.record.dist_info, stored);
  if (unpacked.entry->kind == EntryKind::File) return unpacked.into;
  const std::string below = stored.substr(std::min(stored.size(), kTreeFolder.size()));  // "" or "/path"
  return unpacked.into.empty() ? below.substr(below.empty() ? 0 : 1) : unpacked.into + below;
}

bundle::Scheme scheme_of(std::string_view folder) {
  if (folder == kSitePackagesFolder) return bundle::Scheme::SitePackages;
  if (folder == kScriptsFolder) return bundle::Scheme::Scripts;
  return folder == kDataFolder ? bundle::Scheme::Data : bundle::Scheme::Headers;
}

std::string csv(const std::string& field) {
  if (field.find_first_of(",\"") == std::string::npos) return field;
  std::string out = "\"";
  for (const char c : field) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

constexpr std::uint64_t kMaxStartupFile = std::uint64_t{16} << 20;

bundle::StartupFile read_startup_file(const UnpackedEntry& unpacked, const StoredFile& file) {
  const std::filesystem::path path = unpacked.item / file.path;
  const std::string text = bundle::read_text(path, kMaxStartupFile);
  if (bundle::sha256(bundle::as_bytes(text)) != file.sha256)
    throw Error(ErrorCode::Digest, {.what = "a file of the store was changed since it was unpacked",
                                    .where = path.string(),
                                    .expected = "sha256 " + file.sha256.hex(),
                                    .next = "move its store item away and run apply again"});
  bundle::StartupFile read = bundle::read_pth(text);
  if (!read.fault.empty())
    throw Error(ErrorCode::Format,
                {.what = "a wheel is not acceptable: " + read.fault,
                 .where = unpacked.entry->path.text() + ", " + bundle::SafePath::printable(file.path),
                 .got = "sha256 " + file.sha256.hex(),
                 .next = "do not use this bundle"});
  return read;
}

// Holds the places of an entry other than a wheel to the table; of the interpreter's own, only that it brings no
// package.
class PlaceJudge {
 public:
  PlaceJudge(const bundle::Environment& environment, const UnpackedEntry& unpacked)
      : environment_(environment), owner_(unpacked.entry->path.text()) {
    const auto is_it = [&](const auto& stored) {
      return place_of(environment, unpacked, stored.path) == environment.interpreter.text();
    };
    const ItemRecord& record = unpacked.record;
    interpreter_ = std::any_of(record.files.begin(), record.files.end(), is_it) ||
                   std::any_of(record.links.begin(), record.links.end(), is_it);
  }

  void check(const std::string& path) const {
    const std::string& packages = environment_.site_packages.text();
    if (path == packages || path.starts_with(packages + "/"))
      refuse_place(owner_, path, ErrorCode::Conflict, "site-packages belongs to wheels",
                   "this bundle was not made by sealift-pack; do not use it");
    if (const auto fault = bundle::fault_of_own_entry(path, owner_))
      refuse_place(owner_, path, ErrorCode::Conflict, *fault,
                   "do not use this bundle, unless you know who made it so; pack it again without that");
    if (interpreter_) return;
    if (const auto fault = bundle::fault_of_entry_place(path, environment_.interpreter.text()))
      refuse_place(owner_, path, fault->code, fault->why, fault->next);
  }

 private:
  const bundle::Environment& environment_;
  std::string owner_;
  bool interpreter_ = false;
};

}  // namespace

bundle::StartupEffects startup_of(const bundle::Environment& environment, const UnpackedEntry& unpacked) {
  bundle::StartupEffects effects;
  if (unpacked.entry->kind != EntryKind::Wheel) return effects;
  const std::vector<bundle::Digest>& allowed = environment.startup_files;
  for (const StoredFile& file : unpacked.record.files) {
    const std::size_t slash = file.path.find('/');
    const bundle::Scheme scheme = scheme_of(std::string_view(file.path).substr(0, slash));
    const std::string_view path = std::string_view(file.path).substr(slash + 1);
    bundle::check_place(scheme, path, unpacked.record.dist_info, unpacked.entry->path.text());
    if (scheme != bundle::Scheme::SitePackages || !bundle::is_pth(path)) continue;
    if (std::find(allowed.begin(), allowed.end(), file.sha256) != allowed.end()) continue;
    const bundle::StartupFile read = read_startup_file(unpacked, file);
    effects.folders.insert(effects.folders.end(), read.folders.begin(), read.folders.end());
    effects.namespaces.insert(effects.namespaces.end(), read.namespaces.begin(), read.namespaces.end());
  }
  return effects;
}

std::string place_of_wheel_file(const bundle::Environment& environment, const std::string& dist_info,
                                const std::string& stored_path) {
  const std::size_t slash = stored_path.find('/');
  const std::string_view folder = std::string_view(stored_path).substr(0, slash);
  const std::string_view path = std::string_view(stored_path).substr(slash + 1);
  return bundle::installed_path(scheme_of(folder), path, dist_info, environment.site_packages.text());
}

LayoutMaker::LayoutMaker(const bundle::Environment& environment) : environment_(environment) {
  const auto own = std::make_shared<Place::Origin>(Place::Origin{.owner = "the installer's own record", .item = ""});
  claim(std::string(bundle::kGenerationRecord), place_of_type(Place::Type::Text, own), {});
}

void LayoutMaker::add(UnpackedEntry unpacked, const NewName& new_name) {
  const auto origin = std::make_shared<Place::Origin>(Place::Origin{.owner = unpacked.entry->path.text(),
                                                                    .item = unpacked.item.string(),
                                                                    .wheel = unpacked.entry->kind == EntryKind::Wheel});
  std::set<std::string> left_out;
  for (const bundle::SafePath& path : unpacked.left_out) {
    left_out.insert(path.text());
    left_out_.emplace_back(origin->owner, path.text());
  }
  const auto place = [&](const std::string& stored) { return place_of(environment_, unpacked, stored); };
  for (const std::string& folder : unpacked.record.folders)
    if (unpacked.entry->kind == EntryKind::Tree)
      claim(place(folder), place_of_type(Place::Type::Folder, origin), new_name);
  const bool is_wheel = unpacked.entry->kind == EntryKind::Wheel;
  const std::string packages = environment_.site_packages.text() + "/";
  Wheel wheel{.origin = origin, .dist_info = unpacked.record.dist_info, .rows = {}};
  wheel.rows.reserve(unpacked.record.files.size());
  std::optional<PlaceJudge> judge;
  if (!is_wheel) judge.emplace(environment_, unpacked);
  for (StoredFile& stored : unpacked.record.files) {
    if (is_wheel && bundle::is_cached_bytecode(stored.path)) continue;  // an older installer unpacked it
    std::string path = place(stored.path);
    if (judge) judge->check(path);
    if (left_out.erase(path) != 0) {
      if (is_wheel) wheel.rows.push_back({.there = nullptr, .place = std::move(path)});
      continue;
    }
    Place file = place_of_type(Place::Type::File, origin);
    file.file = std::move(stored);
    const Layout::value_type* const there = claim(std::move(path), std::move(file), new_name);
    if (!is_wheel) continue;
    wheel.rows.push_back({.there = there, .place = {}});
    if (there->first.starts_with(packages))
      packages_.claim(std::string_view(there->first).substr(packages.size()), origin->owner,
                      there->second.file.size == 0);
  }
  for (StoredLink& stored : unpacked.record.links) {
    Place link = place_of_type(Place::Type::Link, origin);
    if (judge) judge->check(place(stored.path));
    link.text = std::move(stored.target);
    claim(place(stored.path), std::move(link), new_name);
  }
  if (!is_wheel) return;
  packages_.claim(unpacked.startup, origin->owner);
  for (const bundle::SafePath& folder : unpacked.shared) packages_.share(origin->owner, folder.text());
  if (!left_out.empty()) refuse_left_out(origin->owner, *left_out.begin(), "which the wheel does not have");
  wheels_.push_back(std::move(wheel));
}

Layout LayoutMaker::finish(const NewName& new_name) {
  for (const auto& [owner, path] : left_out_)
    if (const auto there = layout_.find(path); there == layout_.end() || there->second.type != Place::Type::File)
      refuse_left_out(owner, path, "which nobody brings");
  for (const Wheel& wheel : wheels_) add_record(wheel, new_name);
  packages_.check();
  check_links();
  layout_.erase(std::string(bundle::kGenerationRecord));
  return std::move(layout_);
}

// Finds links that lead out through another entry's links, which no entry shows by itself.
void LayoutMaker::check_links() const {
  std::map<std::string, std::string> links;
  for (const auto& [path, place] : layout_)
    if (place.type == Place::Type::Link) links.emplace(path, place.text);
  if (const auto* link = bundle::link_that_leads_out(links))
    throw Error(ErrorCode::Format,
                {.what = "a symbolic link leads out of the environment, or in a circle",
                 .where = layout_.at(link->first).origin->owner + ", " + bundle::SafePath::printable(link->first),
                 .expected = "a target inside the environment",
                 .got = bundle::SafePath::printable(link->second),
                 .next = "do not use this bundle"});
}

// Gives `path` its owner and returns the layout's element. Entries list their files in order, so the previous place is
// a good hint, and its folder mostly the same.
const Layout::value_type* LayoutMaker::claim(std::string path, Place place, const NewName& new_name) {
  if (path.empty()) return nullptr;                      // a tree's own root placed at the generation's root
  std::vector<const Layout::value_type*> fresh_parents;  // the deepest first
  for (std::size_t end = path.rfind('/'); end != std::string::npos && end != 0; end = path.rfind('/', end - 1)) {
    if (std::string_view(path).substr(0, end) == last_parent_) break;
    const auto [parent, fresh] =
        layout_.try_emplace(path.substr(0, end), place_of_type(Place::Type::Folder, place.origin));
    if (parent->second.type != Place::Type::Folder) refuse_second_owner(parent->first, parent->second, place);
    if (!fresh) break;  // then its parents are folders too
    fresh_parents.push_back(&*parent);
  }
  last_parent_.assign(path, 0, path.rfind('/') == path.npos ? 0 : path.rfind('/'));
  const std::size_t before = layout_.size();
  const auto there = layout_.try_emplace(last_, std::move(path), std::move(place));
  const bool fresh = layout_.size() != before;
  if (!fresh && (place.type != Place::Type::Folder || there->second.type != Place::Type::Folder))
    refuse_second_owner(there->first, there->second, place);
  last_ = std::next(there);
  if (new_name) {
    for (auto parent = fresh_parents.rbegin(); parent != fresh_parents.rend(); ++parent) new_name(**parent);
    if (fresh) new_name(*there);
  }
  return &*there;
}

// After all entries: the row of a file that was left out describes the file that its owner brought.
void LayoutMaker::add_record(const Wheel& wheel, const NewName& new_name) {
  const std::string& site_packages = environment_.site_packages.text();
  std::vector<std::pair<std::string, const StoredFile*>> rows;
  rows.reserve(wheel.rows.size());
  for (const Row& row : wheel.rows) {
    const Layout::value_type& there = row.there != nullptr ? *row.there : *layout_.find(row.place);
    rows.emplace_back(relative_to(site_packages, there.first), &there.second.file);
  }
  if (!std::is_sorted(rows.begin(), rows.end())) std::sort(rows.begin(), rows.end());
  std::string text;
  for (const auto& [path, file] : rows)
    text += csv(path) + ",sha256=" + bundle::to_base64(file->sha256.bytes, bundle::Base64::UrlNoPad) + "," +
            std::to_string(file->size) + "\n";
  const std::string own = wheel.dist_info + "/RECORD";
  text += csv(own) + ",,\n";
  Place record = place_of_type(Place::Type::Text, wheel.origin);
  record.file.path = own;
  record.file.size = text.size();
  record.file.sha256 = bundle::sha256(bundle::as_bytes(text));
  record.text = std::move(text);
  claim(site_packages + "/" + own, std::move(record), new_name);
}

Layout lay_out(const bundle::Environment& environment, std::vector<UnpackedEntry> entries) {
  LayoutMaker maker(environment);
  for (UnpackedEntry& entry : entries) maker.add(std::move(entry));
  return maker.finish();
}

void refuse_changed(const Place& place, const std::string& got) {
  throw Error(ErrorCode::Digest, {.what = "a file of the store was changed since it was unpacked",
                                  .where = place.source(),
                                  .expected = "sha256 " + place.file.sha256.hex(),
                                  .got = got,
                                  .next = "sealift-install doctor --repair BUNDLE with a bundle that carries it; then "
                                          "run this again"});
}

}  // namespace sealift::installer
