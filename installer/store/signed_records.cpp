// SPDX-License-Identifier: Apache-2.0
// The item writer runs on a disk that keeps only the item record.
#include "installer/store/signed_records.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include "sealift/bundle/core/parallel_for.hpp"

namespace sealift::installer {

namespace {

class RecordingDisk final : public Disk {
 public:
  explicit RecordingDisk(std::filesystem::path record) : record_(std::move(record)) {}

  void make_folder(const std::filesystem::path&) override {}
  void make_symlink(std::string_view, const std::filesystem::path&) override {}
  bundle::Descriptor create(const std::filesystem::path&, mode_t) override { return bundle::Descriptor(); }
  void write(const bundle::Descriptor&, const std::filesystem::path& path, bundle::ByteView bytes) override {
    if (path == record_) text_ += bundle::as_text(bytes);
  }
  void close(bundle::Descriptor, const std::filesystem::path&) override {}
  bool protect(const std::filesystem::path&) override { return false; }
  const std::string& text() const { return text_; }

 private:
  std::filesystem::path record_;
  std::string text_;
};

}  // namespace

std::map<std::string, const bundle::Entry*> placed_items(const bundle::VerifiedBundle& bundle) {
  std::map<std::string, const bundle::Entry*> items;
  for (const bundle::Environment::Placement& placement : bundle.manifest().environment.placements) {
    const bundle::Entry* entry = bundle.manifest().find(placement.entry);
    if (!entry->absent) items.emplace(Store::item_name(*entry), entry);  // a delta does not bring it
  }
  return items;
}

ItemRecords signed_records(const bundle::VerifiedBundle& bundle, unsigned threads, bundle::Progress& progress) {
  return signed_records(bundle, placed_items(bundle), threads, progress);
}

ItemRecords signed_records(const bundle::VerifiedBundle& bundle,
                           const std::map<std::string, const bundle::Entry*>& entries, unsigned threads,
                           bundle::Progress& progress) {
  std::vector<std::pair<std::string, const bundle::Entry*>> work;
  std::uint64_t bytes = 0;
  for (const auto& item : entries) {
    work.push_back(item);
    bytes += item.second->installed_size;
  }
  std::stable_sort(work.begin(), work.end(),
                   [](const auto& a, const auto& b) { return a.second->installed_size > b.second->installed_size; });
  progress.begin("reading the bundle", bytes);
  ItemRecords records;
  std::mutex guard;
  bundle::parallel_for(threads_within_memory(bundle, threads), work.size(), [&](std::size_t index) {
    const auto& [name, entry] = work[index];
    const std::filesystem::path nowhere = "/";
    RecordingDisk disk(nowhere / kRecordName);
    unpack_entry(bundle, *entry, nowhere, disk, progress);
    ItemRecord record = parse_item_record(disk.text(), entry->path.text());
    const std::lock_guard lock(guard);
    records.emplace(name, std::move(record));
  });
  progress.end();
  return records;
}

}  // namespace sealift::installer
