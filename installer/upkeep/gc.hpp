// SPDX-License-Identifier: Apache-2.0
// Frees space: removes generations that nothing keeps, then the store items that no generation refers to any more. Kept
// are the current generation, the newest ones, pinned ones, and generations that a running process or a known virtual
// environment uses.
#pragma once

#include "installer/generations/pins.hpp"
#include "installer/host/processes.hpp"
#include "installer/upkeep/status.hpp"

namespace sealift::installer {

struct GcOptions {
  Prefix prefix;
  unsigned keep = 2;  // of the newest, at least 1: the highest number stays, so that no number is used twice
  bool dry_run = false;
  std::filesystem::path proc = "/proc";
};

// What goes and what stays. Computed without a change to the prefix; the removal works from it.
struct Cleanup {
  struct Kept {
    unsigned number = 0;
    std::string why;
  };

  std::vector<Kept> kept;
  std::vector<unsigned> generations;  // that go
  std::vector<std::string> items;     // of the store, that go
  std::uint64_t files = 0;            // names that are removed with them
  std::uint64_t bytes = 0;            // that are freed; files that a kept generation links stay
  std::vector<std::string> warnings;
};

// Plans, and removes unless it is a dry run. What goes is renamed into staging first, checked again for users, since a
// process may have started meanwhile, and only then removed: a crash leaves a generation whole or gone.
Cleanup gc(const GcOptions& options, Disk& disk);

}  // namespace sealift::installer
