// SPDX-License-Identifier: Apache-2.0
// A folder that a verb writes below: while this value lives, nothing below it is reached through a symbolic link.
// Verbs that write into a prefix have it with the prefix lock; `export` and `venv` write elsewhere.
#pragma once

#include <utility>

#include "installer/disk/disk.hpp"

namespace sealift::installer {

class Anchored {
 public:
  // The folder is there; who may change it the caller has looked at.
  Anchored(Disk& disk, const std::filesystem::path& folder) : disk_(disk), before_(disk.anchor(folder)) {}
  Anchored(const Anchored&) = delete;
  Anchored& operator=(const Anchored&) = delete;
  ~Anchored() { disk_.anchor(std::move(before_)); }

 private:
  Disk& disk_;
  std::shared_ptr<const AnchorFolder> before_;
};

}  // namespace sealift::installer
