// SPDX-License-Identifier: Apache-2.0
// A folder that a run writes into, locked against a second run.
// Before anything is written there; released when the process ends, however it ends.
// A launcher whose variables nobody knows starts a run in each task: all would train alone and write over each other.
#pragma once

#include <sealift/train.hpp>

#include <filesystem>

namespace sealift::trainer {

class LockedFolder {
 public:
  /// Rank 0 makes `folder` and locks `.in_use` in it; empty: nothing is locked. Throws on every rank where another
  /// process has it, which is named with its host. Collective.
  LockedFolder(const std::filesystem::path& folder, train::Collectives& world);
  LockedFolder(const LockedFolder&) = delete;
  LockedFolder& operator=(const LockedFolder&) = delete;
  ~LockedFolder();

 private:
  int file_ = -1;
};

}  // namespace sealift::trainer
