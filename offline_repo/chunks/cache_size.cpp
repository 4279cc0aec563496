// SPDX-License-Identifier: Apache-2.0
// Read once at the start; what cannot be read limits nothing.
#include "offline_repo/chunks/cache_size.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace sealift::offline_repo {

namespace {

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;

// The least memory.max from the group at `path` up to the root of the tree; the largest number without a limit.
std::uint64_t group_limit(const std::string& tree, std::string path) {
  std::uint64_t limit = UINT64_MAX;
  for (;;) {
    std::ifstream file(tree + path + "/memory.max");
    if (std::uint64_t bytes = 0; file >> bytes) limit = std::min(limit, bytes);  // "max" is no number
    if (path.empty()) return limit;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

}  // namespace

unsigned cache_for(std::uint64_t bytes) {
  const std::uint64_t wanted = std::clamp<std::uint64_t>(bytes / 8 / kMebibyte, 512, 8192);
  return static_cast<unsigned>(std::max<std::uint64_t>(1, std::min(wanted, bytes / 2 / kMebibyte)));
}

std::uint64_t memory_here(const std::string& root) {
  std::uint64_t bytes = UINT64_MAX;
  std::ifstream memory(root + "proc/meminfo");
  for (std::string line; std::getline(memory, line);) {
    std::istringstream words(line);
    std::string name;
    if (std::uint64_t kibibytes = 0; words >> name >> kibibytes && name == "MemTotal:" && kibibytes < UINT64_MAX / 1024)
      bytes = kibibytes * 1024;
  }
  std::ifstream groups(root + "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);)
    if (line.starts_with("0::/")) {
      const std::string path = line.substr(3);
      if (path.find("..") == std::string::npos)
        bytes = std::min(bytes, group_limit(root + "sys/fs/cgroup", path == "/" ? "" : path));
    }
  return bytes == UINT64_MAX ? std::uint64_t{4} << 30 : bytes;
}

}  // namespace sealift::offline_repo
