// SPDX-License-Identifier: Apache-2.0
// Only the paths with findings are touched: a whole new item would cost its bytes again in every generation that links
// the old one. Stopped at any moment, it leaves less to repair.
#include "installer/doctor/repair.hpp"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>

#include "installer/layout/generation_builder.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

namespace {

bool folder_is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(fs::symlink_status(path, ignored));
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

// Replaces paths in three steps: everything new is made below staging, synced, then renamed one by one.
class PathRepair {
 public:
  PathRepair(fs::path staging, Disk& disk) : staging_(std::move(staging)), disk_(disk) {}

  // `place`: what must be at `there`; nullptr: nothing.
  void replace(const fs::path& there, const Place* place) {
    Change change{.there = there, .fresh = {}, .type = place ? std::optional(place->type) : std::nullopt};
    if (place != nullptr && place->type != Place::Type::Folder) {
      const fs::path folder = next();
      build_generation({{"new", *place}}, folder, disk_, 1);
      change.fresh = folder / "new";
    }
    changes_.push_back(std::move(change));
  }

  void commit() {
    if (changes_.empty()) return;
    disk_.sync_all(staging_);
    for (const Change& change : changes_) apply(change);
    changes_.clear();
    disk_.sync_all(staging_);  // names too: this is one file system
  }

 private:
  struct Change {
    fs::path there;
    fs::path fresh;
    std::optional<Place::Type> type;
  };

  fs::path next() { return staging_ / ("repair-" + std::to_string(count_++)); }
  void put_aside(const fs::path& there) {
    if (is_there(there)) disk_.rename(there, next());
  }
  void apply(const Change& change) {
    if (!change.type) {
      put_aside(change.there);
    } else if (*change.type == Place::Type::Folder) {
      if (!folder_is_there(change.there)) put_aside(change.there);
      disk_.make_folder(change.there);  // an existing folder keeps its mode; it stays a finding
    } else {
      if (folder_is_there(change.there)) put_aside(change.there);
      disk_.rename(change.fresh, change.there);
    }
  }

  fs::path staging_;
  Disk& disk_;
  std::vector<Change> changes_;
  std::size_t count_ = 0;
};

// Those of `paths` that lie below `folder`, relative to it; "" is the folder itself.
std::vector<std::string> below(const std::set<std::string>& paths, const std::string& folder) {
  std::vector<std::string> found;
  for (auto path = paths.lower_bound(folder); path != paths.end() && path->starts_with(folder); ++path)
    if (path->size() == folder.size() || (*path)[folder.size()] == '/')
      found.push_back(path->substr(std::min(path->size(), folder.size() + 1)));
  return found;
}

const Place* place_in(const Layout& layout, const std::string& path) {
  const auto found = layout.find(path);
  return found == layout.end() ? nullptr : &found->second;
}

class Repair {
 public:
  Repair(const std::vector<Deviation>& findings, const Prefix& prefix, const fs::path& staging, Disk& disk,
         bundle::Progress& progress)
      : prefix_(prefix), store_(prefix), staging_(staging), disk_(disk), progress_(progress), paths_(staging, disk) {
    for (const Deviation& finding : findings)
      if (finding.kind != Deviation::Kind::Outside && finding.kind != Deviation::Kind::Broken)
        wrong_.insert(finding.paths.begin(), finding.paths.end());
  }

  // Repairs store items from the bundle, one at a time, which bounds the space in staging.
  void items(const bundle::VerifiedBundle& bundle, const ItemRecords& records) {
    for (const auto& [name, entry] : placed_items(bundle)) {
      const std::string item = "store/" + name;
      const std::vector<std::string> paths = below(wrong_, item);
      if (paths.empty()) continue;
      const fs::path fresh = staging_ / name, there = prefix_.store() / name;
      progress_.note("rebuilding " + entry->path.text());
      try {
        unpack_entry(bundle, *entry, fresh, disk_, progress_, &store_);
      } catch (const bundle::Error& error) {  // what a patch builds on may be gone; the others are repaired even so
        if (entry->encoding != bundle::Encoding::Patch) throw;
        progress_.warn(entry->path.text() + " cannot be rebuilt: " + error.facts().what);
        disk_.remove_tree(fresh);
        continue;
      }
      if (!folder_is_there(there)) {
        paths_.replace(there, nullptr);
        paths_.commit();
        disk_.sync_all(staging_);
        disk_.rename(fresh, there);
      } else {
        Layout layout = item_tree(fresh, records.at(name)).layout;
        Place& record = layout[std::string(kRecordName)];
        record.type = Place::Type::Text;
        record.text = bundle::read_text(fresh / kRecordName, kMaxItemRecord);
        for (const std::string& path : paths) {
          static const Place kRoot;
          paths_.replace(path.empty() ? there : there / path, path.empty() ? &kRoot : place_in(layout, path));
        }
        paths_.commit();
        disk_.remove_tree(fresh);
      }
      for (const std::string& path : paths) {
        const std::string name_below_prefix = path.empty() ? item : item + "/" + path;
        wrong_.erase(name_below_prefix);
        repaired_.insert(name_below_prefix);
      }
    }
  }

  // Repairs the wrong paths of a generation, and links those again whose file of the store was replaced.
  void generation(const GenerationRecord& record, const ItemRecords& records) {
    const bool known = !record.site_packages.empty() &&
                       std::all_of(record.entries.begin(), record.entries.end(),
                                   [&](const GenerationRecord::Part& part) { return records.contains(part.item); });
    if (!known) return;
    const ExpectedTree tree = generation_tree(prefix_, record, records);
    const std::vector<std::string> wrong = below(wrong_, "generations/" + Prefix::generation_name(record.number));
    std::set<std::string> paths(wrong.begin(), wrong.end());
    for (const auto& [path, place] : tree.layout)
      if (place.type == Place::Type::File && was_repaired(place.source())) paths.insert(path);
    for (const std::string& path : paths) {
      if (path.empty() || tree.own.contains(path)) continue;
      const Place* place = place_in(tree.layout, path);
      if (place != nullptr && place->type == Place::Type::File && wrong_.contains(below_prefix(place->source())))
        continue;
      paths_.replace(tree.folder / path, place);
    }
    paths_.commit();
  }

 private:
  std::string below_prefix(const fs::path& path) const {
    return path.lexically_relative(prefix_.folder()).generic_string();
  }
  // Whether this file of the store, or its whole item, was replaced.
  bool was_repaired(const fs::path& source) const {
    if (repaired_.empty()) return false;
    const std::string path = below_prefix(source);
    return repaired_.contains(path) || repaired_.contains(path.substr(0, path.find('/', std::string("store/").size())));
  }

  const Prefix& prefix_;
  const Store store_;
  fs::path staging_;
  Disk& disk_;
  bundle::Progress& progress_;
  PathRepair paths_;
  std::set<std::string> wrong_;     // below the prefix
  std::set<std::string> repaired_;  // of the store
};

}  // namespace

void repair(const std::vector<Deviation>& findings, const bundle::VerifiedBundle& bundle, const ItemRecords& records,
            const Status& status, const Prefix& prefix, Disk& disk, bundle::Progress& progress) {
  const fs::path staging = prefix.staging() / std::to_string(::getpid());
  disk.make_folder(prefix.staging());
  disk.make_folder(staging);
  disk.make_folder(prefix.store());
  Repair repair(findings, prefix, staging, disk, progress);
  repair.items(bundle, records);
  for (const Status::Generation& generation : status.generations)
    if (generation.record) repair.generation(*generation.record, records);
  sweep(prefix, disk);
}

}  // namespace sealift::installer
