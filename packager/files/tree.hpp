// SPDX-License-Identifier: Apache-2.0
// A folder tree as a value: files by their path in the tree, wherever their bytes come from. It is written as one tar
// whose bytes depend only on paths, contents and executable bits, so that equal trees have equal digests.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "sealift/bundle/archive/tar.hpp"
#include "sealift/bundle/core/digest.hpp"

namespace sealift::packager {

struct TreeItem {
  std::filesystem::path source;  // of a file; empty: `text` is its content
  std::string text;              // content, or a link's target
  bool link = false;
  bool executable = false;
  bool folder = false;  // which has no file
};

// Keys are SafePath texts; the folders of files are implied.
using Tree = std::map<std::string, TreeItem>;

struct TreeTar {
  bundle::Digest sha256;
  std::uint64_t size = 0;
};

// Writes the new file `path`; throws Format when a path is not safe or a link leaves the tree.
TreeTar write_tree_tar(const Tree& tree, const std::filesystem::path& path);

}  // namespace sealift::packager
