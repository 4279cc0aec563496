// SPDX-License-Identifier: Apache-2.0
// What lies below a folder, as a value: read from a disk, compared, put back onto one. For tests that ask what a crash
// leaves and whether the next run makes it whole.
#pragma once

#include <sys/stat.h>

#include <map>
#include <string>

#include "tests/support/temp_dir.hpp"

namespace sealift::test {

struct DiskNode {
  enum class Type { Folder, File, Link };

  Type type = Type::Folder;
  mode_t mode = 0755;  // of a link: 0777
  std::string data;    // a file's bytes, a link's target

  bool operator==(const DiskNode&) const = default;
};

// Path below the root -> what is there. `twin` is the first path of the same file: hard links are a part of it.
struct ImagePath {
  DiskNode node;
  std::string twin;

  bool operator==(const ImagePath&) const = default;
};
using DiskImage = std::map<std::string, ImagePath>;

inline DiskImage read_image(const std::filesystem::path& root) {
  namespace fs = std::filesystem;
  std::map<std::string, fs::path> sorted;
  if (fs::exists(root))
    for (const fs::directory_entry& there : fs::recursive_directory_iterator(root))
      sorted[there.path().lexically_relative(root).string()] = there.path();
  DiskImage image;
  std::map<ino_t, std::string> first;
  for (const auto& [path, real] : sorted) {
    struct stat status {};
    if (::lstat(real.c_str(), &status) != 0) throw std::runtime_error("cannot examine " + real.string());
    ImagePath& there = image[path];
    there.node.mode = status.st_mode & 07777;
    there.twin = path;
    if (S_ISLNK(status.st_mode)) {
      there.node.type = DiskNode::Type::Link;
      there.node.data = fs::read_symlink(real).string();
    } else if (S_ISREG(status.st_mode)) {
      there.node.type = DiskNode::Type::File;
      there.node.data = read_file(real);
      there.twin = first.try_emplace(status.st_ino, path).first->second;
    }
  }
  return image;
}

// Makes `root` hold this and nothing else.
inline void write_image(const DiskImage& image, const std::filesystem::path& root) {
  namespace fs = std::filesystem;
  fs::remove_all(root);
  fs::create_directories(root);
  for (const auto& [path, there] : image) {
    const fs::path real = root / path;
    if (there.node.type == DiskNode::Type::Folder) {
      fs::create_directory(real);
    } else if (there.node.type == DiskNode::Type::Link) {
      fs::create_symlink(there.node.data, real);
      continue;
    } else if (there.twin != path) {
      fs::create_hard_link(root / there.twin, real);
      continue;
    } else {
      std::ofstream(real, std::ios::binary) << there.node.data;
    }
    if (::chmod(real.c_str(), there.node.mode) != 0) throw std::runtime_error("cannot set a mode: " + real.string());
  }
}

// What stands below `folder`, with the paths below it.
inline DiskImage part_of(const DiskImage& image, const std::string& folder) {
  DiskImage part;
  for (auto at = image.lower_bound(folder + "/"); at != image.end() && at->first.starts_with(folder + "/"); ++at)
    part[at->first.substr(folder.size() + 1)] = at->second;
  return part;
}

}  // namespace sealift::test
