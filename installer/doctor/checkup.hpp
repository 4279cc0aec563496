// SPDX-License-Identifier: Apache-2.0
// Compares everything in a prefix once with what its records say: every file of store and generations, then the
// libraries that the current interpreter loads. The doctor's step before and after each repair; changes nothing.
#pragma once

#include <optional>
#include <set>

#include "installer/doctor/compare_tree.hpp"
#include "installer/doctor/relink.hpp"
#include "installer/trial/loaded_libraries.hpp"
#include "installer/upkeep/status.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::installer {

struct Checkup {
  std::vector<Deviation> findings;
  std::size_t generations = 0;
  std::size_t items = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;                   // hashed
  std::optional<LoadedLibraries> libraries;  // of the current generation, unless a note says why not
  std::vector<std::string> notes;
  std::vector<Deviation> repaired;   // findings that a repair has put right
  std::vector<CopiedFile> copies;    // of the store's files in generations
  std::optional<Relinked> relinked;  // where that was asked for
  std::uint64_t signed_items = 0;    // whose records were compared with the bundle's
};

class PrefixCheckup {
 public:
  // `signed_records` are those of the bundle to repair from, or empty. Throws Missing when there is no prefix.
  PrefixCheckup(const Prefix& prefix, unsigned threads, const ItemRecords& signed_records, bundle::Progress& progress);

  Checkup run();  // once
  // Of the store's items whose records can be used; the signed one where there is one.
  const ItemRecords& records() const { return records_; }
  const Status& status() const { return status_; }

 private:
  void find(Deviation::Kind kind, std::string path, std::string expected, std::string got);
  void check_own_folders();
  void check_items();
  void check_generation(const Status::Generation& generation);
  void check_libraries();
  void note(std::string text);

  const Prefix& prefix_;
  const ItemRecords& signed_;
  Status status_;
  TreeComparer comparer_;
  ItemRecords records_;
  std::set<std::string> missing_;  // items already reported as missing
  Checkup checkup_;
};

}  // namespace sealift::installer
