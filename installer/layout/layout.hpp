// SPDX-License-Identifier: Apache-2.0
// What a generation will consist of, as a value: every path and where it comes from, made from the manifest's
// placements and the item records. Every path has one owner, or a Conflict names both.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "installer/store/item_record.hpp"
#include "sealift/bundle/wheel/package_owners.hpp"

namespace sealift::installer {

struct Place {
  enum class Type { File, Folder, Link, Text };

  struct Origin {
    std::string owner;  // the entry that brings it, for messages
    std::string item;   // the entry's folder in the store
    bool wheel = false;
  };

  std::string source() const { return origin->item + "/" + file.path; }  // of a File: its file in the store

  Type type = Type::Folder;
  std::shared_ptr<const Origin> origin;
  StoredFile file;   // of a File; of a Text only size and digest
  std::string text;  // of a Text its bytes, of a Link its target
};

// Throws Digest: the file of the store that belongs there is not as it was unpacked, but `got`.
[[noreturn]] void refuse_changed(const Place& place, const std::string& got);

// Path below the generation -> what stands there. Sorted, so a folder comes before what it holds.
using Layout = std::map<std::string, Place>;

struct UnpackedEntry {
  const bundle::Entry* entry;
  std::string into;            // the placement's
  std::filesystem::path item;  // its folder in the store
  ItemRecord record;
  std::vector<bundle::SafePath> left_out = {};  // the placement's
  std::vector<bundle::SafePath> shared = {};    // the placement's
  bundle::StartupEffects startup = {};          // of a Wheel, as startup_of gives them
};

// What the .pth files of a wheel do, read from the store again, since an older installer with other rules may have
// unpacked it. Throws as bundle::Wheel does for what no wheel may place or run when Python starts. Of other entries
// nothing.
bundle::StartupEffects startup_of(const bundle::Environment& environment, const UnpackedEntry& entry);

// Called for every path as it gets its owner, a folder before what it holds. The reference lives as long as the layout.
using NewName = std::function<void(const Layout::value_type&)>;

// Lays out entry by entry, so that names can be made while later entries are still being read. A layout that is refused
// has some names by then.
class LayoutMaker {
 public:
  explicit LayoutMaker(const bundle::Environment& environment);
  LayoutMaker(const LayoutMaker&) = delete;
  LayoutMaker& operator=(const LayoutMaker&) = delete;

  // Throws Conflict when a path has two owners, Format when the bundle leaves out a file that the wheel lacks.
  void add(UnpackedEntry entry, const NewName& new_name = {});
  // Adds each wheel's RECORD and makes the checks that need the whole: throws Conflict for packages with two owners,
  // Format for a left-out file that no entry brings and for links that lead out. The maker cannot be used afterwards.
  Layout finish(const NewName& new_name = {});

 private:
  struct Row {                        // of a RECORD
    const Layout::value_type* there;  // nullptr when another entry brings the file
    std::string place;                // then its path
  };
  struct Wheel {
    std::shared_ptr<const Place::Origin> origin;
    std::string dist_info;
    std::vector<Row> rows;
  };

  const Layout::value_type* claim(std::string path, Place place, const NewName& new_name);
  void add_record(const Wheel& wheel, const NewName& new_name);
  void check_links() const;

  const bundle::Environment& environment_;
  bundle::PackageOwners packages_;
  Layout layout_;
  Layout::iterator last_ = layout_.end();  // after the path that was claimed last
  std::string last_parent_;                // its folder
  std::vector<Wheel> wheels_;
  std::vector<std::pair<std::string, std::string>> left_out_;  // entry, path
};

// The layout of entries whose records are all read; throws what LayoutMaker throws.
Layout lay_out(const bundle::Environment& environment, std::vector<UnpackedEntry> entries);

// Where a wheel's stored file belongs below the generation.
std::string place_of_wheel_file(const bundle::Environment& environment, const std::string& dist_info,
                                const std::string& stored_path);

}  // namespace sealift::installer
