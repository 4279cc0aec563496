// SPDX-License-Identifier: Apache-2.0
// The item record, record.json of a store item: what unpacking an entry gave, with the size and digest of every file.
// Made from verified bytes while they were written, the digests from the list that the entry brings; generations are
// laid out from it, not from listings. (The generation record is generation.json; RECORD is the file in a wheel.)
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bundle/core/json.hpp"
#include "installer/disk/stamp.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::installer {

struct StoredFile {
  std::string path;  // below the item, such as site-packages/torch/version.py
  std::uint64_t size = 0;
  bundle::Digest sha256;
  bool executable = false;
  // Not in the record: where this file's stamp is kept while an environment is built (stamps.hpp). A file without one
  // is hashed before it is used.
  Stamp* stamp = nullptr;

  bool operator==(const StoredFile& other) const {
    return path == other.path && size == other.size && sha256 == other.sha256 && executable == other.executable;
  }
};

struct StoredLink {
  std::string path;
  std::string target;

  bool operator==(const StoredLink&) const = default;
};

// The folders of a wheel's item, one for each scheme; a Tree has kTreeFolder, a File the one file kFileName.
inline constexpr std::string_view kSitePackagesFolder = "site-packages";
inline constexpr std::string_view kScriptsFolder = "bin";
inline constexpr std::string_view kHeadersFolder = "include";
inline constexpr std::string_view kDataFolder = "data";
inline constexpr std::string_view kTreeFolder = "tree";
inline constexpr std::string_view kFileName = "file";
inline constexpr std::string_view kRecordName = "record.json";

struct ItemRecord {
  bundle::EntryKind kind = bundle::EntryKind::File;
  std::string name;  // the entry's file name when it was unpacked, for people
  bundle::Digest content{};
  std::string dist_info;  // of a wheel: NAME-VERSION.dist-info
  std::vector<StoredFile> files;
  std::vector<std::string> folders;  // all of them, each after its parent
  std::vector<StoredLink> links;

  bool operator==(const ItemRecord&) const = default;
};

inline constexpr std::uint64_t kMaxItemRecord = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kRecordFormat =
    2;  // of the item record and of the generation record; 1 named items otherwise
// Takes the key "format"; throws CannotCheck when it is another version's.
void check_record_format(bundle::JsonObject& object);

std::string write_item_record(const ItemRecord& record);
// Throws Format; the record is our own, but a disk may have damaged it.
ItemRecord parse_item_record(std::string_view text, const std::string& where);
ItemRecord read_item_record(const std::filesystem::path& path);

}  // namespace sealift::installer
