// SPDX-License-Identifier: Apache-2.0
// Trees for images, as a test writes them down, and the image of one.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <map>
#include <string>

#include "bundle/image/image_writer.hpp"
#include "tests/support/disk_image.hpp"

namespace sealift::test {

inline constexpr bundle::Time kImageTime{std::chrono::seconds{1'700'000'000}};

// Files by path with their bytes; a path that ends in '/' is a folder, a text that begins with '>' a link.
struct PlainTree {
  std::map<std::string, std::string> paths;
  std::string executable = {};

  bundle::ImageTree nodes() const {
    using bundle::ImageNode;
    bundle::ImageTree tree;
    for (const auto& [path, text] : paths) {
      if (path.ends_with('/'))
        tree.push_back({.path = path.substr(0, path.size() - 1)});
      else if (text.starts_with('>'))
        tree.push_back({.path = path, .type = ImageNode::Type::Link, .target = text.substr(1)});
      else
        tree.push_back(
            {.path = path, .type = ImageNode::Type::File, .executable = path == executable, .size = text.size()});
    }
    std::sort(tree.begin(), tree.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    return tree;
  }

  // What a reader of its image must see.
  DiskImage expected() const {
    using bundle::ImageNode;
    DiskImage image;
    for (const ImageNode& node : nodes()) {
      ImagePath& there = image[node.path];
      there.twin = node.path;
      if (node.type == ImageNode::Type::Folder) continue;
      const bool link = node.type == ImageNode::Type::Link;
      there.node = {.type = link ? DiskNode::Type::Link : DiskNode::Type::File,
                    .mode = static_cast<mode_t>(link              ? 0777
                                                : node.executable ? 0555
                                                                  : 0444),
                    .data = link ? node.target : paths.at(node.path)};
    }
    return image;
  }
};

inline std::uint64_t write_image_of(const PlainTree& tree, const std::filesystem::path& path, unsigned threads = 2) {
  const bundle::ImageTree nodes = tree.nodes();
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].type == bundle::ImageNode::Type::File) order.push_back(i);
  const bundle::Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  const bundle::ReadImageFile read = [&](const bundle::ImageNode& node, const bundle::ByteSink& sink) {
    sink(bundle::as_bytes(tree.paths.at(node.path)));
  };
  return bundle::write_image(nodes, order, read, {.time = kImageTime, .threads = threads}, file, path);
}

inline std::string noise(std::size_t size, std::uint32_t seed) {
  std::string text = "n";  // never a link's mark
  while (text.size() < size) text += static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  return text;
}

inline PlainTree each_kind_of_file() {
  using bundle::kImageBlock;
  return {.paths = {{"bin/", ""},
                    {"bin/tool", "#!/bin/sh\necho tool\n"},
                    {"bin/alias", ">tool"},
                    {"bin.d", "sorted between a folder and what it holds"},
                    {"empty/", ""},
                    {"lib/", ""},
                    {"lib/nothing", ""},
                    {"lib/one_block", noise(kImageBlock, 1)},
                    {"lib/blocks_and_an_end", noise(3 * kImageBlock + 17, 2)},
                    {"lib/zeros", std::string(5 * kImageBlock, '\0')},
                    {"lib/small", noise(1000, 3)},
                    {"lib/twin_of_small", noise(1000, 3)},
                    {"lib/twin_of_blocks", noise(3 * kImageBlock + 17, 2)},
                    {"lib/" + std::string(250, 'n'), "a long name"},
                    {"lib/far", ">" + std::string(3000, 'x')},
                    {"lib/\xe5\xae\x89 \"space\"", "odd"}},
          .executable = "bin/tool"};
}

}  // namespace sealift::test
