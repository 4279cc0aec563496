// SPDX-License-Identifier: Apache-2.0
// PREFIX/store: unpacked entries by content, each whole or absent, never changed once named. Generations are hard links
// into it, and later bundles reuse its items. New items wait in staging until all of a bundle's are complete, so a
// bundle that is refused half-way has changed nothing else, and the next try finds them.
#pragma once

#include <mutex>

#include "installer/disk/disk.hpp"
#include "installer/prefix/prefix.hpp"
#include "installer/store/item_record.hpp"
#include "sealift/bundle/manifest/inventory.hpp"

namespace sealift::installer {

class Store {
 public:
  explicit Store(const Prefix& prefix) : folder_(prefix.store()), staged_(prefix.staged_items()) {}

  static std::string item_name(const bundle::Entry& entry);

  std::filesystem::path item(const bundle::Entry& entry) const { return folder_ / item_name(entry); }
  std::filesystem::path item(const std::string& name) const { return folder_ / name; }
  bool has(const bundle::Entry& entry) const;
  // The item that a wheel builds on which is carried as a patch.
  std::filesystem::path base(const bundle::Entry& entry) const { return folder_ / entry.base.hex(); }
  // Finished and durable, but waiting in staging for the rest of its bundle.
  bool is_staged(const bundle::Entry& entry) const;
  // For an item that exists; throws Format when the record is another entry's.
  ItemRecord record(const bundle::Entry& entry) const;
  ItemRecord record(const bundle::Entry& entry, std::string_view text) const;  // whose text was read already

 private:
  std::filesystem::path folder_;
  std::filesystem::path staged_;
};

// The names of the items in the store, sorted; names that no installer gives are left out.
std::vector<std::string> item_names(const Prefix& prefix);

// Gives finished items their names in staging/items: contents durable first, then the rename. Works in batches, since a
// sync is expensive; an item with its name survives a crash and is not unpacked again. Safe from several threads.
class Finisher {
 public:
  Finisher(Disk& disk, const Prefix& prefix) : disk_(disk), folder_(prefix.staged_items()) {}

  void add(std::filesystem::path staged, std::string item_name, std::uint64_t bytes);
  void flush();

 private:
  struct Finished {
    std::filesystem::path staged;
    std::string name;
  };
  static constexpr std::uint64_t kBatch = std::uint64_t{512} << 20;  // bytes that a crash may cost

  Disk& disk_;
  std::filesystem::path folder_;
  std::mutex guard_;
  std::vector<Finished> finished_;
  std::uint64_t bytes_ = 0;
};

// Moves the finished items of `entries` into the store.
void publish(const std::vector<const bundle::Entry*>& entries, const Prefix& prefix, Disk& disk);

// Removes `folder`, whose name means that it is complete. The name goes first, durably, since a crash during the
// removal must not leave a part under it: `folder` is renamed to `aside`, an unused path in staging.
void discard(const std::filesystem::path& folder, const std::filesystem::path& aside, Disk& disk);

// Removes what a crash left in staging, except finished items; and staging itself when there are none.
void sweep(const Prefix& prefix, Disk& disk);

}  // namespace sealift::installer
