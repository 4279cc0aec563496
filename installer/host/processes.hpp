// SPDX-License-Identifier: Apache-2.0
// Which folders running processes of this machine still use: what they map, run, have open or stand in, from /proc.
// Folders are compared by device and inode, each path seen from the process's own root, so that a prefix that is
// mounted elsewhere, in a container for instance, or was moved, is found as well.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace sealift::installer {

struct ProcessView {
  std::map<std::filesystem::path, std::string> used;  // one of the folders -> by whom: "process 4711 (python3)"
  std::size_t seen = 0;                               // processes that could be examined
  std::size_t hidden = 0;                             // that may not be: other users' mostly
  bool others_invisible = false;                      // /proc does not even list other users' processes
};

// `proc` is where /proc is mounted. Throws CannotCheck when it tells nothing. Processes of other machines are never
// seen; a process that ends while we look is used by nobody any more.
ProcessView who_uses(const std::vector<std::filesystem::path>& folders, const std::filesystem::path& proc = "/proc");

}  // namespace sealift::installer
