// SPDX-License-Identifier: Apache-2.0
// The item writer does its work on a disk that keeps nothing but the record.
#include "installer/signed_records.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

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

ItemRecords signed_records(const bundle::VerifiedBundle& bundle, unsigned threads, Progress& progress) {
  std::vector<std::pair<std::string, const bundle::Entry*>> work;
  std::uint64_t bytes = 0;
  for (const auto& item : placed_items(bundle)) {
    work.push_back(item);
    bytes += item.second->installed_size;
  }
  std::stable_sort(work.begin(), work.end(),
                   [](const auto& a, const auto& b) { return a.second->installed_size > b.second->installed_size; });
  progress.begin("reading the bundle", bytes);
  ItemRecords records;
  std::atomic<std::size_t> next{0};
  std::mutex guard;
  std::exception_ptr failure;
  const auto worker = [&] {
    for (std::size_t i; (i = next.fetch_add(1)) < work.size();) try {
        const std::filesystem::path nowhere = "/";
        RecordingDisk disk(nowhere / kRecordName);
        unpack_entry(bundle, *work[i].second, nowhere, disk, progress);
        ItemRecord record = parse_item_record(disk.text(), work[i].second->path.text());
        const std::lock_guard lock(guard);
        records.emplace(work[i].first, std::move(record));
      } catch (...) {
        const std::lock_guard lock(guard);
        if (!failure) failure = std::current_exception();
        next = work.size();
      }
  };
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 1; i < std::min<std::size_t>(std::max(1u, threads), work.size()); ++i)
      workers.emplace_back(worker);
    worker();
  }
  if (failure) std::rethrow_exception(failure);
  progress.end();
  return records;
}

}  // namespace sealift::installer
