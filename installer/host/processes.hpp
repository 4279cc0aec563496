// SPDX-License-Identifier: Apache-2.0
// Which folders the running processes of this machine use, from /proc: what they run, map or have open, and their
// working folders. Folders are compared by device and inode, each path seen from the process's own root folder, so that
// a prefix is found too where a container mounts it elsewhere, or where it was moved.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace sealift::installer {

struct ProcessView {
  std::map<std::filesystem::path, std::string> used;  // one of the folders -> by whom: "process 4711 (python3)"
  std::size_t seen = 0;                               // processes that were examined
  std::size_t hidden = 0;                             // processes that may not be examined, mostly other users'
  bool others_invisible = false;                      // /proc does not even list other users' processes
};

// `proc` is where /proc is mounted. Throws CannotCheck when it shows no process. Processes of other machines are not
// seen, and a process that ends meanwhile uses nothing.
ProcessView who_uses(const std::vector<std::filesystem::path>& folders, const std::filesystem::path& proc = "/proc");

}  // namespace sealift::installer
