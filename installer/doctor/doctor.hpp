// SPDX-License-Identifier: Apache-2.0
// Is what lies in a prefix still what was signed? Every file of store and generations is hashed and compared with the
// record that was made from verified bytes; with a bundle, the records too are held against the signed ones, and what
// is wrong is put right from its verified bytes.
#pragma once

#include "installer/doctor/compare_tree.hpp"
#include "installer/trial/loaded_libraries.hpp"
#include "installer/generations/status.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

struct DoctorOptions {
  Prefix prefix;
  std::filesystem::path repair;  // the bundle to repair from; empty: only look
  bundle::Time now = bundle::system_time();
  unsigned threads = 1;
};

// What was found in one look at a prefix.
struct Checkup {
  std::vector<Deviation> findings;
  std::size_t generations = 0;
  std::size_t items = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;                   // hashed
  std::optional<LoadedLibraries> libraries;  // of the current generation, unless a note says why not
  std::vector<std::string> notes;
  std::vector<Deviation> repaired;   // what was found before it was put right
  std::uint64_t signed_items = 0;  // whose records were compared with the bundle's
};

// Throws Missing when there is no prefix, and whatever speaks against the bundle. Without `repair` nothing is written
// and no lock is needed.
Checkup doctor(const DoctorOptions& options, Disk& disk, Progress& progress);

// The code to end with: of the worst finding. Nothing when all is well.
std::optional<bundle::ErrorCode> verdict(const Checkup& checkup);

bundle::Json json_of(const Checkup& checkup, const DoctorOptions& options);
std::string text_of(const Checkup& checkup, const DoctorOptions& options);

}  // namespace sealift::installer
