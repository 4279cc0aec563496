// SPDX-License-Identifier: Apache-2.0
// PREFIX/store: unpacked entries by digest, each there whole or not at all, never changed once named.
// Generations are links into it; what one bundle unpacked, the next one finds.
#pragma once

#include <mutex>

#include "installer/disk.hpp"
#include "installer/item_record.hpp"
#include "installer/prefix.hpp"

namespace sealift::installer {

class Store {
 public:
  explicit Store(const Prefix& prefix) : folder_(prefix.store()) {}

  // The entry's digest; with a suffix for what is no wheel, since the same bytes as a tree, a file or a program give
  // different items.
  static std::string item_name(const bundle::Entry& entry);

  std::filesystem::path item(const bundle::Entry& entry) const { return folder_ / item_name(entry); }
  bool has(const bundle::Entry& entry) const;
  // Of an item that is there; throws Format when it is not this entry's.
  ItemRecord record(const bundle::Entry& entry) const;

 private:
  std::filesystem::path folder_;
};

// Names finished staging folders in the store: contents durable first, then the rename. Works in batches, since a sync
// is dear; what was published survives a crash and is not unpacked again. Safe from several threads.
class Publisher {
 public:
  Publisher(Disk& disk, const Prefix& prefix) : disk_(disk), store_(prefix.store()) {}

  void add(std::filesystem::path staged, std::string item_name, std::uint64_t bytes);
  void flush();

 private:
  struct Finished {
    std::filesystem::path staged;
    std::string name;
  };
  static constexpr std::uint64_t kBatch = std::uint64_t{512} << 20;  // bytes that a crash may cost

  Disk& disk_;
  std::filesystem::path store_;
  std::mutex guard_;
  std::vector<Finished> finished_;
  std::uint64_t bytes_ = 0;
};

}  // namespace sealift::installer
