// SPDX-License-Identifier: Apache-2.0
// An item that has its name, in staging/items or in the store, is complete: it was written, synced and renamed. There
// is no other state, so nothing here repairs or resumes half an item.
#include "installer/store/store.hpp"

#include <algorithm>

namespace sealift::installer {

using bundle::Error;
using bundle::ErrorCode;

std::string Store::item_name(const bundle::Entry& entry) {
  return bundle::store_item_name(entry);
}

bool Store::has(const bundle::Entry& entry) const {
  std::error_code ignored;
  return std::filesystem::is_regular_file(item(entry) / kRecordName, ignored);
}

bool Store::is_staged(const bundle::Entry& entry) const {
  std::error_code ignored;
  return std::filesystem::is_regular_file(staged_ / item_name(entry) / kRecordName, ignored);
}

ItemRecord Store::record(const bundle::Entry& entry) const {
  return record(entry, bundle::read_text(item(entry) / kRecordName, kMaxItemRecord));
}

ItemRecord Store::record(const bundle::Entry& entry, std::string_view text) const {
  ItemRecord record = parse_item_record(text, (item(entry) / kRecordName).string());
  if (record.content != entry.content || record.kind != entry.kind)
    throw Error(ErrorCode::Format, {.what = "a store item's content differs from its name",
                                    .where = item(entry).string(),
                                    .expected = "content " + entry.content.hex(),
                                    .got = "content " + record.content.hex(),
                                    .next = "move the item away and run apply again; it is unpacked anew"});
  return record;
}

std::vector<std::string> item_names(const Prefix& prefix) {
  std::vector<std::string> names;
  std::error_code error;
  for (const std::filesystem::directory_entry& item : std::filesystem::directory_iterator(prefix.store(), error))
    if (std::string name = item.path().filename().string();
        bundle::Digest::from_hex(std::string_view(name).substr(0, name.find('-'))))
      names.push_back(std::move(name));
  std::sort(names.begin(), names.end());
  return names;
}

void Finisher::add(std::filesystem::path staged, std::string item_name, std::uint64_t bytes) {
  bool full = false;
  {
    const std::lock_guard lock(guard_);
    finished_.push_back({std::move(staged), std::move(item_name)});
    full = (bytes_ += bytes) >= kBatch;
  }
  if (full) flush();
}

void Finisher::flush() {
  std::vector<Finished> batch;
  {
    const std::lock_guard lock(guard_);
    batch.swap(finished_);
    bytes_ = 0;
  }
  if (batch.empty()) return;
  disk_.sync_all(folder_);
  for (const Finished& item : batch) disk_.rename(item.staged, folder_ / item.name);
  disk_.sync_folder(folder_);
}

void publish(const std::vector<const bundle::Entry*>& entries, const Prefix& prefix, Disk& disk) {
  for (const bundle::Entry* entry : entries)
    disk.rename(prefix.staged_items() / Store::item_name(*entry), prefix.store() / Store::item_name(*entry));
  disk.sync_folder(prefix.store());
}

void discard(const std::filesystem::path& folder, const std::filesystem::path& aside, Disk& disk) {
  disk.rename(folder, aside);
  disk.sync_folder(aside.parent_path());
  disk.remove_tree(aside);
}

void sweep(const Prefix& prefix, Disk& disk) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path items = prefix.staged_items();
  if (!fs::is_directory(fs::symlink_status(items, error)) || fs::is_empty(items, error))
    return disk.remove_tree(prefix.staging());
  std::vector<fs::path> left;
  for (fs::directory_iterator there(prefix.staging(), error), end; !error && there != end; there.increment(error))
    if (there->path() != items) left.push_back(there->path());
  for (const fs::path& path : left) disk.remove_tree(path);
}

}  // namespace sealift::installer
