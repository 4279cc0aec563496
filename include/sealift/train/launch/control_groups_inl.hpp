// SPDX-License-Identifier: Apache-2.0
// The bodies of control_groups.hpp, which declares them and says what they promise.
// /proc/self/cgroup has the groups ("0::/a/b", or "4:memory:/a/b" of version 1), /proc/self/mountinfo where the trees
// are mounted, and which group of a tree is the mount's root: a container without a namespace of its own for groups has
// its group there.
#pragma once

#include <sealift/train/launch/control_groups.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace sealift::train::host {

struct MountedTree {
  std::filesystem::path folder;  ///< where it is mounted
  std::string group;             ///< the group that is found there
  bool unified = false;
};

SEALIFT_BODY bool lists(const std::string& words, const std::string& wanted) {
  std::istringstream all(words);
  for (std::string word; std::getline(all, word, ',');) {
    if (word == wanted) return true;
  }
  return false;
}

/// The trees of /proc/self/mountinfo that may limit by `controller`; the usual places where it has none.
SEALIFT_BODY std::vector<MountedTree> mounted_trees(const std::string& controller, const std::filesystem::path& root) {
  std::vector<MountedTree> trees;
  std::ifstream mounts(root / "proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string id, parent, device, group, folder, word, kind, source, options;
    words >> id >> parent >> device >> group >> folder;
    while (words >> word && word != "-") {
    }
    words >> kind >> source >> options;
    const bool unified = kind == "cgroup2";
    if (!unified && (kind != "cgroup" || !lists(options, controller))) continue;
    trees.push_back({root / std::filesystem::path(folder).relative_path(), group, unified});
  }
  if (!trees.empty()) return trees;
  return {{root / "sys/fs/cgroup", "/", true}, {root / "sys/fs/cgroup" / controller, "/", false}};
}

/// The group of this process in a tree of version 2, or in the one of version 1 that has `controller`.
SEALIFT_BODY std::string own_group(const std::string& controller, bool unified, const std::filesystem::path& root) {
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    if (unified ? controllers.empty() : lists(controllers, controller)) return line.substr(second + 1);
  }
  return "/";
}

SEALIFT_BODY std::vector<ControlGroup> control_groups(const std::string& controller,
                                                      const std::filesystem::path& root) {
  namespace fs = std::filesystem;
  std::vector<ControlGroup> groups;
  std::error_code none;
  for (const auto& tree : mounted_trees(controller, root)) {
    auto below = fs::path(own_group(controller, tree.unified, root)).lexically_relative(tree.group);
    if (below.empty() || *below.begin() == "..") below.clear();  // not below this mount: its root is all that is seen
    for (below = (tree.folder / below).lexically_normal();; below = below.parent_path()) {
      if (!below.has_filename()) below = below.parent_path();
      if (fs::is_directory(below, none)) groups.push_back({below, tree.unified});
      if (below == tree.folder || below.native().size() <= tree.folder.native().size()) break;
    }
  }
  return groups;
}

SEALIFT_BODY std::optional<double> number_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  double number = 0;
  return in >> number ? std::optional(number) : std::nullopt;
}

SEALIFT_BODY std::optional<double> number_of(const std::filesystem::path& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    double number = 0;
    if (words >> word >> number && word == key) return number;
  }
  return std::nullopt;
}

SEALIFT_BODY std::string line_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  line.resize(std::min<std::size_t>(line.size(), 65536));
  return line;
}

}  // namespace sealift::train::host
