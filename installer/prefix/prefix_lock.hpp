// SPDX-License-Identifier: Apache-2.0
// The prefix lock: one writer to a prefix at a time. An open-file-description lock on PREFIX/lock, held while this
// value lives. The kernel drops it when the process dies in any way, so there are no stale locks to judge by their age.
// Every verb that writes takes it, so it is also where the prefix is anchored and its owner is looked at.
#pragma once

#include "installer/disk/disk.hpp"
#include "installer/prefix/prefix.hpp"

namespace sealift::installer {

class PrefixLock {
 public:
  // Makes the prefix if it is missing, and anchors `disk` to it while this value lives. Throws what require_own_prefix
  // throws, and Conflict, naming the holder, when another process has the prefix lock.
  PrefixLock(const Prefix& prefix, Disk& disk, const char* verb);
  PrefixLock(const PrefixLock&) = delete;
  PrefixLock& operator=(const PrefixLock&) = delete;
  ~PrefixLock() { disk_.anchor(std::move(before_)); }

  // Whether a process has it now; for verbs that only read.
  static bool is_held(const Prefix& prefix);
  // Throws the Conflict that names the holder.
  [[noreturn]] static void throw_held(const Prefix& prefix, std::string what);

 private:
  void take(const Prefix& prefix, const char* verb);

  Disk& disk_;
  std::shared_ptr<const AnchorFolder> before_;
  bundle::Descriptor file_;
};

}  // namespace sealift::installer
