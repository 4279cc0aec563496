// SPDX-License-Identifier: Apache-2.0
// The order depends on paths and owners alone, so that both sides of the gap find the same one. What is read late is
// known by its name; a wrong guess costs a seek.
#include "installer/image/image_tree.hpp"

#include <algorithm>
#include <array>
#include <tuple>

namespace sealift::installer {

namespace {

// What no import opens.
bool read_late(std::string_view path) {
  static constexpr std::array kFolders = {"include/", "share/", "tests/", "test/", "doc/", "docs/", "idlelib/"};
  static constexpr std::array kEnds = {".h",   ".hpp", ".cuh", ".inl", ".a",   ".o",     ".c",    ".cc",  ".cpp",
                                       ".cu",  ".pyi", ".pyx", ".pxd", ".md",  ".rst",   ".html", ".css", ".js",
                                       ".png", ".svg", ".pdf", ".tcl", ".msg", ".cmake", ".ipynb"};
  for (const std::string_view folder : kFolders)
    for (std::size_t at = path.find(folder); at != path.npos; at = path.find(folder, at + 1))
      if (at == 0 || path[at - 1] == '/') return true;
  return std::any_of(kEnds.begin(), kEnds.end(), [&](std::string_view end) { return path.ends_with(end); });
}

bundle::ImageNode::Type type_of(Place::Type type) {
  using Type = bundle::ImageNode::Type;
  if (type == Place::Type::Folder) return Type::Folder;
  return type == Place::Type::Link ? Type::Link : Type::File;
}

}  // namespace

bundle::ImageTree image_tree_of(const Layout& layout) {
  bundle::ImageTree tree;
  tree.reserve(layout.size());
  for (const auto& [path, place] : layout) {
    bundle::ImageNode node{.path = path, .type = type_of(place.type)};
    if (place.type == Place::Type::Link) node.target = place.text;
    if (place.type == Place::Type::Text) node.size = place.text.size();
    if (place.type == Place::Type::File) {
      node.size = place.file.size;
      node.executable = place.file.executable;
    }
    tree.push_back(std::move(node));
  }
  return tree;
}

std::vector<std::size_t> image_order_of(const Layout& layout, const bundle::ImageTree& tree,
                                        const std::string& interpreter) {
  const auto python = layout.find(interpreter);
  const std::string first = python == layout.end() || !python->second.origin ? "" : python->second.origin->owner;
  struct Key {
    bool late, library;
    std::string_view owner;
    std::size_t index;
  };
  std::vector<Key> keys;
  std::size_t index = 0;
  for (const auto& [path, place] : layout) {
    const std::string_view owner = place.origin ? std::string_view(place.origin->owner) : std::string_view();
    if (tree[index].type == bundle::ImageNode::Type::File)
      keys.push_back({.late = read_late(path), .library = owner != first, .owner = owner, .index = index});
    ++index;
  }
  std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
    return std::tie(a.late, a.library, a.owner, a.index) < std::tie(b.late, b.library, b.owner, b.index);
  });
  std::vector<std::size_t> order;
  for (const Key& key : keys) order.push_back(key.index);
  return order;
}

}  // namespace sealift::installer
