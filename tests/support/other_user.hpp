// SPDX-License-Identifier: Apache-2.0
// Another user of the machine, for tests of what root and others let them do: user 4711, whom no system has.
#pragma once

#include <unistd.h>

#include <filesystem>

#include "tests/support/left_out.hpp"

namespace sealift::test {

inline bool is_root() {
  if (::geteuid() == 0) return true;
  left_out("only root gives files away");
  return false;
}

// `path` and all below it, links too.
inline void give_away(const std::filesystem::path& path, uid_t user = 4711) {
  REQUIRE(::lchown(path.c_str(), user, user) == 0);
  if (!std::filesystem::is_directory(std::filesystem::symlink_status(path))) return;
  for (const std::filesystem::directory_entry& entry : std::filesystem::recursive_directory_iterator(path))
    REQUIRE(::lchown(entry.path().c_str(), user, user) == 0);
}

}  // namespace sealift::test
