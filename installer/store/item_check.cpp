// SPDX-License-Identifier: Apache-2.0
// Compares the folder's name, the item record in it, and the files beside the record with each other.
#include "installer/store/item_check.hpp"

#include <sys/stat.h>

#include <algorithm>

#include "installer/store/item_record.hpp"
#include "sealift/bundle/manifest/inventory.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

namespace {

mode_t type_of(const fs::path& path, struct stat& status) {
  return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & S_IFMT : 0;
}

bool is_file(const fs::path& path, const StoredFile& file) {
  struct stat status {};
  return type_of(path, status) == S_IFREG && static_cast<std::uint64_t>(status.st_size) == file.size &&
         ((status.st_mode & 0100) != 0) == file.executable;
}

bool is_folder(const fs::path& path) {
  struct stat status {};
  return type_of(path, status) == S_IFDIR;
}

bool is_link(const fs::path& path, const std::string& target) {
  std::error_code error;
  return fs::read_symlink(path, error) == target && !error;
}

// The store name of the entry that would have this record.
std::string name_of(const ItemRecord& record) {
  bundle::Entry entry;
  entry.kind = record.kind;
  entry.content = record.content;
  entry.executable =
      std::any_of(record.files.begin(), record.files.end(), [](const StoredFile& file) { return file.executable; });
  return bundle::store_item_name(entry);
}

}  // namespace

std::string item_fault(const fs::path& item) {
  ItemRecord record;
  try {
    record = read_item_record(item / kRecordName);
  } catch (const bundle::Error& error) {
    return "its record cannot be used (" + error.facts().what + ")";
  }
  if (name_of(record) != item.filename()) return "its record is another item's";
  for (const StoredFile& file : record.files)
    if (!is_file(item / file.path, file)) return file.path + " is not as its record says";
  for (const std::string& folder : record.folders)
    if (!is_folder(item / folder)) return folder + " is no folder";
  for (const StoredLink& link : record.links)
    if (!is_link(item / link.path, link.target)) return link.path + " is another link";
  return {};
}

}  // namespace sealift::installer
