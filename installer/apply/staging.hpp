// SPDX-License-Identifier: Apache-2.0
// The folder in PREFIX/staging that one run works in: made at its start, gone at its end. A failed run leaves only
// finished store items in staging, which the next one takes; a successful run leaves nothing.
#pragma once

#include "installer/disk/disk.hpp"
#include "installer/prefix/prefix.hpp"

namespace sealift::installer {

// The caller holds the prefix lock.
class Staging {
 public:
  Staging(const Prefix& prefix, Disk& disk);  // makes the folders; throws what the disk throws
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging();

  const std::filesystem::path& folder() const { return folder_; }
  // The run was successful, so that finished items left by runs of other bundles go too.
  void done() { done_ = true; }

 private:
  const Prefix& prefix_;
  Disk& disk_;
  std::filesystem::path folder_;
  bool done_ = false;
};

}  // namespace sealift::installer
