// SPDX-License-Identifier: Apache-2.0
// The prefix lock: one writer to a prefix at a time. An open-file-description lock on PREFIX/lock, held while this
// value lives. The kernel drops it when the process dies in any way, so there are no stale locks to judge by their age.
#pragma once

#include "installer/disk/disk.hpp"
#include "installer/prefix/prefix.hpp"

namespace sealift::installer {

class PrefixLock {
 public:
  // Makes the prefix if it is missing. Throws Conflict, naming the holder, when another process has the prefix lock.
  PrefixLock(const Prefix& prefix, Disk& disk, const char* verb);

  // Whether a process has it now; for verbs that only read.
  static bool is_held(const Prefix& prefix);
  // Throws the Conflict that names the holder.
  [[noreturn]] static void throw_held(const Prefix& prefix, std::string what);

 private:
  bundle::Descriptor file_;
};

}  // namespace sealift::installer
