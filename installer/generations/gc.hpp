// SPDX-License-Identifier: Apache-2.0
// Takes back room: removes generations that nobody keeps, then the store items that no generation refers to any more.
// Kept are the current generation, the newest few, those that are pinned, and those that a running process uses.
#pragma once

#include "installer/generations/pins.hpp"
#include "installer/generations/status.hpp"
#include "installer/host/processes.hpp"

namespace sealift::installer {

struct GcOptions {
  Prefix prefix;
  unsigned keep = 2;  // of the newest, at least one: the highest number stays, so that no number is given twice
  bool dry_run = false;
  std::filesystem::path proc = "/proc";
};

// What goes and what stays, made by looking only; the same value drives the removal.
struct Cleanup {
  struct Kept {
    unsigned number = 0;
    std::string why;
  };

  std::vector<Kept> kept;
  std::vector<unsigned> generations;  // that go
  std::vector<std::string> items;     // of the store, that go
  std::uint64_t files = 0;            // names that go with them
  std::uint64_t bytes = 0;            // that this frees: what a kept generation links stays
  std::vector<std::string> warnings;
};

// Plans, and removes unless it is a dry run. What is to go is renamed into staging first, looked at again, since a
// process may have started meanwhile, and only then removed: a crash leaves a generation whole or gone.
Cleanup gc(const GcOptions& options, Disk& disk);

}  // namespace sealift::installer
