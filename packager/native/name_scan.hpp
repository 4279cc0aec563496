// SPDX-License-Identifier: Apache-2.0
// Finds library names that are whole strings in a file, which is fed in pieces. No table of an ELF file lists what it
// hands to dlopen, so these strings are the only trace. A hint, never a proof.
#pragma once

#include <set>
#include <string>

#include "sealift/bundle/core/bytes.hpp"

namespace sealift::packager {

class NameScan {
 public:
  void feed(bundle::ByteView piece);
  // "libfoo.so", "libfoo.so.2", "libfoo.so.%d": a whole C string, or the last part of one that is a path.
  std::set<std::string> finish();

 private:
  void scan();

  std::string window_;  // the end of the last piece, and the new one
  std::set<std::string> names_;
};

}  // namespace sealift::packager
