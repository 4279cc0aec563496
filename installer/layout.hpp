// SPDX-License-Identifier: Apache-2.0
// What a generation will consist of, as a value: every path with where it comes from, made from the manifest's
// placements and the store's records. One owner for every path, or a Conflict that names both.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "installer/item_record.hpp"

namespace sealift::installer {

struct Place {
  enum class Type { File, Folder, Link, Text };

  Type type = Type::Folder;
  std::string owner;             // the entry that brings it, for messages
  std::string source;           // of a File: its file in the store
  StoredFile file;               // of a File; of a Text only size and digest
  std::string text;              // of a Text its bytes, of a Link its target
};

// Path below the generation -> what stands there. Sorted, so a folder comes before what it holds.
using Layout = std::map<std::string, Place>;

struct UnpackedEntry {
  const bundle::Entry* entry;
  std::string into;            // the placement's
  std::filesystem::path item;  // its folder in the store
  ItemRecord record;
  std::vector<bundle::SafePath> left_out = {};  // the placement's
};

// Throws Conflict when a path has two owners, Format when one is left out that the wheel lacks or that nobody brings.
Layout lay_out(const bundle::Environment& environment, const std::vector<UnpackedEntry>& entries);

// Where a wheel's stored file belongs below the generation.
std::string place_of_wheel_file(const bundle::Environment& environment, const std::string& dist_info,
                                const std::string& stored_path);

}  // namespace sealift::installer
