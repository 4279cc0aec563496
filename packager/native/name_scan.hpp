// SPDX-License-Identifier: Apache-2.0
// Which library names stand as whole strings in a file that arrives in pieces: what a program hands to dlopen is in no
// table of its ELF file, so this is all that can be seen of it. A hint, never a proof.
#pragma once

#include <set>
#include <string>

#include "sealift/bundle/core/bytes.hpp"

namespace sealift::packager {

class NameScan {
 public:
  void feed(bundle::ByteView piece);
  // "libfoo.so", "libfoo.so.2", "libfoo.so.%d": C strings, or the last part of one that is a path.
  std::set<std::string> finish();

 private:
  void scan();

  std::string window_;  // what was seen last, and what is new
  std::set<std::string> names_;
};

}  // namespace sealift::packager
