// SPDX-License-Identifier: Apache-2.0
// Also writes each wheel's RECORD, because its rows are paths relative to site-packages, which only the environment
// knows. Source: packaging.python.org, "Recording installed projects".
#include "installer/layout.hpp"

#include <set>

#include "sealift/bundle/archive_tree.hpp"
#include "sealift/bundle/package_owners.hpp"

namespace sealift::installer {

using bundle::EntryKind;
using bundle::Error;
using bundle::ErrorCode;

namespace {

[[noreturn]] void refuse_second_owner(const std::string& path, const Place& first, const Place& second) {
  throw Error(ErrorCode::Conflict, {.what = "two entries of the bundle claim one path",
                                    .where = bundle::SafePath::printable(path),
                                    .expected = "one owner",
                                    .got = first.owner + " and " + second.owner,
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

Place place_of_type(Place::Type type, const std::string& owner) {
  Place place;
  place.type = type;
  place.owner = owner;
  return place;
}

class LayoutMaker {
 public:
  explicit LayoutMaker(const bundle::Environment& environment) : environment_(environment) {}

  void add(const UnpackedEntry& unpacked) {
    const std::string& owner = unpacked.entry->path.text();
    std::set<std::string> left_out;
    for (const bundle::SafePath& path : unpacked.left_out) left_out.insert(path.text());
    const auto place = [&](const std::string& stored) { return place_of(unpacked, stored); };
    for (const std::string& folder : unpacked.record.folders)
      if (unpacked.entry->kind == EntryKind::Tree) claim(place(folder), place_of_type(Place::Type::Folder, owner));
    std::vector<std::string> own;
    for (const StoredFile& stored : unpacked.record.files) {
      if (left_out.erase(place(stored.path)) != 0) continue;
      own.push_back(place(stored.path));
      Place file = place_of_type(Place::Type::File, owner);
      file.source = unpacked.item / stored.path;
      file.file = stored;
      claim(place(stored.path), std::move(file));
    }
    for (const StoredLink& stored : unpacked.record.links) {
      Place link = place_of_type(Place::Type::Link, owner);
      link.text = stored.target;
      claim(place(stored.path), std::move(link));
    }
    if (unpacked.entry->kind != EntryKind::Wheel) return;
    const std::string& site_packages = environment_.site_packages.text();
    for (const std::string& path : own)
      if (path.starts_with(site_packages + "/")) packages_.claim(path.substr(site_packages.size() + 1), owner);
    if (!left_out.empty()) refuse_left_out(owner, *left_out.begin(), "which the wheel does not have");
  }

  // Once every entry was added, since a row of a file that was left out tells of the one that its owner brought.
  void add_records(const std::vector<UnpackedEntry>& entries) {
    for (const UnpackedEntry& unpacked : entries) {
      for (const bundle::SafePath& path : unpacked.left_out)
        if (const auto there = layout_.find(path.text());
            there == layout_.end() || there->second.type != Place::Type::File)
          refuse_left_out(unpacked.entry->path.text(), path.text(), "which nobody brings");
      if (unpacked.entry->kind == EntryKind::Wheel) add_record(unpacked);
    }
  }

  // What no entry shows by itself: packages with two owners, links that leave through another entry's links.
  void check() const {
    packages_.check();
    std::map<std::string, std::string> links;
    for (const auto& [path, place] : layout_)
      if (place.type == Place::Type::Link) links.emplace(path, place.text);
    if (const auto* link = bundle::link_that_leads_out(links))
      throw Error(ErrorCode::Format,
                  {.what = "a symbolic link leads out of the environment, or in a circle",
                   .where = layout_.at(link->first).owner + ", " + bundle::SafePath::printable(link->first),
                   .expected = "a target inside the environment",
                   .got = bundle::SafePath::printable(link->second),
                   .next = "do not use this bundle"});
  }

  void claim(const std::string& path, Place place) {
    if (path.empty()) return;  // a tree's own root placed at the generation's root
    for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
      const auto [parent, fresh] =
          layout_.try_emplace(path.substr(0, slash), place_of_type(Place::Type::Folder, place.owner));
      if (parent->second.type != Place::Type::Folder) refuse_second_owner(parent->first, parent->second, place);
    }
    const auto [there, fresh] = layout_.try_emplace(path, place);
    if (!fresh && (place.type != Place::Type::Folder || there->second.type != Place::Type::Folder))
      refuse_second_owner(path, there->second, place);
  }

  Layout take() { return std::move(layout_); }

 private:
  std::string place_of(const UnpackedEntry& unpacked, const std::string& stored) const {
    if (unpacked.entry->kind == EntryKind::Wheel)
      return place_of_wheel_file(environment_, unpacked.record.dist_info, stored);
    if (unpacked.entry->kind == EntryKind::File) return unpacked.into;
    const std::string below = stored.substr(std::min(stored.size(), kTreeFolder.size()));  // "" or "/path"
    return unpacked.into.empty() ? below.substr(below.empty() ? 0 : 1) : unpacked.into + below;
  }

  static std::string csv(const std::string& field) {
    if (field.find_first_of(",\"") == std::string::npos) return field;
    std::string out = "\"";
    for (const char c : field) out += c == '"' ? "\"\"" : std::string(1, c);
    return out + "\"";
  }

  void add_record(const UnpackedEntry& unpacked) {
    const std::string& site_packages = environment_.site_packages.text();
    const std::string own = unpacked.record.dist_info + "/RECORD";
    std::map<std::string, const StoredFile*> rows;
    for (const StoredFile& file : unpacked.record.files) {
      const std::string place = place_of(unpacked, file.path);
      rows[std::filesystem::path(place).lexically_relative(site_packages).generic_string()] = &layout_.at(place).file;
    }
    std::string text;
    for (const auto& [path, file] : rows)
      text += csv(path) + ",sha256=" + bundle::to_base64(file->sha256.bytes, bundle::Base64::UrlNoPad) + "," +
              std::to_string(file->size) + "\n";
    text += csv(own) + ",,\n";
    Place record = place_of_type(Place::Type::Text, unpacked.entry->path.text());
    record.file.path = own;
    record.file.size = text.size();
    record.file.sha256 = bundle::sha256(bundle::as_bytes(text));
    record.text = std::move(text);
    claim(site_packages + "/" + own, std::move(record));
  }

  const bundle::Environment& environment_;
  bundle::PackageOwners packages_;
  Layout layout_;
};

}  // namespace

std::string place_of_wheel_file(const bundle::Environment& environment, const std::string& dist_info,
                                const std::string& stored_path) {
  const std::size_t slash = stored_path.find('/');
  const std::string scheme = stored_path.substr(0, slash), path = stored_path.substr(slash + 1);
  const std::string& site_packages = environment.site_packages.text();
  if (scheme == kSitePackagesFolder) return site_packages + "/" + path;
  if (scheme == kScriptsFolder) return "bin/" + path;
  if (scheme == kDataFolder) return path;
  // include/python3.11/<project>, where python3.11 is the folder that holds site-packages
  const std::string python = std::filesystem::path(site_packages).parent_path().filename().string();
  return "include/" + python + "/" + dist_info.substr(0, dist_info.find('-')) + "/" + path;
}

Layout lay_out(const bundle::Environment& environment, const std::vector<UnpackedEntry>& entries) {
  LayoutMaker maker(environment);
  maker.claim(std::string(bundle::kGenerationRecord), place_of_type(Place::Type::Text, "the installer's own record"));
  for (const UnpackedEntry& entry : entries) maker.add(entry);
  maker.add_records(entries);
  maker.check();
  Layout layout = maker.take();
  layout.erase(std::string(bundle::kGenerationRecord));
  return layout;
}

}  // namespace sealift::installer
