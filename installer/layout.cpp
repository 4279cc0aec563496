// SPDX-License-Identifier: Apache-2.0
// Also writes each wheel's RECORD, because its rows are paths relative to site-packages, which only the environment
// knows. Source: packaging.python.org, "Recording installed projects".
#include "installer/layout.hpp"

#include <algorithm>
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

// RECORD's way to name a file: "torch/version.py", "../../../bin/torchrun". Both are normal; taking tens of thousands
// of them apart as filesystem::path would cost more than making their names.
std::string relative_to(std::string_view folder, std::string_view path) {
  if (path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/')
    return std::string(path.substr(folder.size() + 1));
  std::size_t shared = 0;  // of both, up to and with a slash
  for (std::size_t i = 0; i < std::min(folder.size(), path.size()) && folder[i] == path[i]; ++i)
    if (path[i] == '/') shared = i + 1;
  std::string out = "../";
  for (const char c : folder.substr(shared))
    if (c == '/') out += "../";
  return out.append(path.substr(shared));
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
    const bool wheel = unpacked.entry->kind == EntryKind::Wheel;
    const std::string& site_packages = environment_.site_packages.text();
    const std::string packages = site_packages + "/", item = unpacked.item.string() + "/";
    std::vector<Row>& rows = rows_.emplace_back();
    for (const StoredFile& stored : unpacked.record.files) {
      const std::string path = place(stored.path);
      if (wheel) rows.push_back({.path = relative_to(site_packages, path), .place = path});
      if (left_out.erase(path) != 0) continue;
      Place file = place_of_type(Place::Type::File, owner);
      file.source = item + stored.path;
      file.file = stored;
      const Place* const claimed = claim(path, std::move(file));
      if (!wheel) continue;
      rows.back().file = &claimed->file;
      if (path.starts_with(packages)) packages_.claim(path.substr(packages.size()), owner);
    }
    for (const StoredLink& stored : unpacked.record.links) {
      Place link = place_of_type(Place::Type::Link, owner);
      link.text = stored.target;
      claim(place(stored.path), std::move(link));
    }
    if (wheel && !left_out.empty()) refuse_left_out(owner, *left_out.begin(), "which the wheel does not have");
  }

  // Once every entry was added, since a row of a file that was left out tells of the one that its owner brought.
  void add_records(const std::vector<UnpackedEntry>& entries) {
    for (std::size_t index = 0; index < entries.size(); ++index) {
      const UnpackedEntry& unpacked = entries[index];
      for (const bundle::SafePath& path : unpacked.left_out)
        if (const auto there = layout_.find(path.text());
            there == layout_.end() || there->second.type != Place::Type::File)
          refuse_left_out(unpacked.entry->path.text(), path.text(), "which nobody brings");
      if (unpacked.entry->kind == EntryKind::Wheel) add_record(unpacked, std::move(rows_[index]));
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

  // What stands there now, for as long as the layout lives.
  const Place* claim(const std::string& path, Place place) {
    if (path.empty()) return nullptr;  // a tree's own root placed at the generation's root
    for (std::size_t end = path.rfind('/'); end != std::string::npos && end != 0; end = path.rfind('/', end - 1)) {
      const auto [parent, fresh] =
          layout_.try_emplace(path.substr(0, end), place_of_type(Place::Type::Folder, place.owner));
      if (parent->second.type != Place::Type::Folder) refuse_second_owner(parent->first, parent->second, place);
      if (!fresh) break;  // nor are those above it anything else
    }
    const auto [there, fresh] = layout_.try_emplace(path, std::move(place));
    if (!fresh && (place.type != Place::Type::Folder || there->second.type != Place::Type::Folder))
      refuse_second_owner(path, there->second, place);
    return &there->second;
  }

  Layout take() { return std::move(layout_); }

 private:
  struct Row {  // of a RECORD
    std::string path;
    std::string place;
    const StoredFile* file = nullptr;  // the layout's; none while the file is another entry's
  };

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

  void add_record(const UnpackedEntry& unpacked, std::vector<Row> rows) {
    const std::string& site_packages = environment_.site_packages.text();
    const std::string own = unpacked.record.dist_info + "/RECORD";
    std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.path < b.path; });
    std::string text;
    for (const Row& row : rows) {
      const StoredFile& file = row.file != nullptr ? *row.file : layout_.at(row.place).file;
      text += csv(row.path) + ",sha256=" + bundle::to_base64(file.sha256.bytes, bundle::Base64::UrlNoPad) + "," +
              std::to_string(file.size) + "\n";
    }
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
  std::vector<std::vector<Row>> rows_;  // of each entry that was added
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
