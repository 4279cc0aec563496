// SPDX-License-Identifier: Apache-2.0
// One writer to a prefix: an open-file-description lock on PREFIX/lock, held while this value lives.
// The kernel drops it when the process dies, however it dies, so there are no stale locks to judge by their age.
#pragma once

#include "installer/disk/disk.hpp"
#include "installer/prefix/prefix.hpp"

namespace sealift::installer {

class PrefixLock {
 public:
  // Makes the prefix if need be; throws Conflict, naming the holder, when somebody else has the lock.
  PrefixLock(const Prefix& prefix, Disk& disk, const char* verb);

  // Whether somebody has it now, for who only looks.
  static bool is_held(const Prefix& prefix);
  // What a refusal says.
  [[noreturn]] static void throw_held(const Prefix& prefix, std::string what);

 private:
  bundle::Descriptor file_;
};

}  // namespace sealift::installer
