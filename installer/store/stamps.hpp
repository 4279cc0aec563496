// SPDX-License-Identifier: Apache-2.0
// PREFIX/stamps: for each file of a store item, its stamp from when its bytes were last known to be the signed ones. A
// file that still has its stamp is linked into the next environment as it is; every other one is hashed first. An
// item's record that still has its stamp is taken from here, without its JSON. A cache: where it is missing, damaged or
// stale (a copied prefix, a crash), files are hashed again, and nothing is lost. Our own links move a file's time of
// change, so whatever makes or removes names takes the stamps along, under the lock.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "installer/store/store.hpp"

namespace sealift::installer {

class Stamps {
 public:
  Stamps() = default;
  // Those of a prefix; none when the file is missing or not whole.
  static Stamps read(const Prefix& prefix);
  Stamps(Stamps&& other) noexcept : items_(std::move(other.items_)) {}

  // For an item that was just unpacked. Safe from several threads.
  void add(const std::string& item, const bundle::Digest& record, std::vector<Stamp> files);
  // The record of an item in the store, each of its files with a place for its stamp, which lives as long as this.
  // Throws Digest when the record is another than was written, and what Store::record throws. One thread.
  ItemRecord record_of(const Store& store, const bundle::Entry& entry);

  void forget(const std::string& item) { items_.erase(item); }
  // From here on every file counts as one without a stamp; records are still held to their digests.
  void hash_all_again();
  // After names of ours were made or removed: takes the new times of change of files that are otherwise as they were.
  // With `only_check`, before that: forgets the stamps that do not hold.
  void follow_links(const Prefix& prefix, bool only_check = false);

  // Written beside and renamed, without a sync: a torn file counts as no file.
  void save(const Prefix& prefix, const std::filesystem::path& staging, Disk& disk) const;

 private:
  struct Item {
    bundle::Digest record;  // of the bytes of record.json
    Stamp record_stamp;
    std::string packed;        // what was read from record.json when it had its stamp
    std::vector<Stamp> files;  // in the record's order
  };

  ItemRecord read_record(const Store& store, const bundle::Entry& entry, const Stamp& now);

  std::mutex guard_;                   // of items_ while entries are unpacked
  std::map<std::string, Item> items_;  // by the item's name; elements stay where they are
};

}  // namespace sealift::installer
