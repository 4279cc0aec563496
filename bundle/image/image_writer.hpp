// SPDX-License-Identifier: Apache-2.0
// A tree of files as one SquashFS image. Equal trees, orders and times give equal bytes, whatever wrote them and with
// however many threads: owners are 0, modes are those of a generation, and nothing of the machine is in it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/time.hpp"

namespace sealift::bundle {

struct ImageNode {
  enum class Type { Folder, File, Link };

  std::string path;  // below the root, without one of its own; names of at most 255 bytes
  Type type = Type::Folder;
  bool executable = false;  // of a File: 0555, else 0444; a Folder has 0755
  std::uint64_t size = 0;   // of a File
  std::string target;       // of a Link
};

// Sorted by path, so that a folder stands before what it holds.
using ImageTree = std::vector<ImageNode>;

// Gives the bytes of a file of the tree, in order; throws what is wrong with it.
using ReadImageFile = std::function<void(const ImageNode& file, const ByteSink& sink)>;

struct ImageOptions {
  Time time;             // of the image and of each name in it; from 1970 to 2106, else the nearest of these
  unsigned threads = 1;  // that compress
};

// Files with more bytes than this are blocks of it; smaller ones share blocks.
inline constexpr std::uint32_t kImageBlock = 128 << 10;

// Writes the image into `file`, which is new and open for reading and writing, and returns its bytes. `order` says in
// which order the bytes of files lie, as indexes of `tree`, each file once. Throws Io, Space, Format for a file of
// another size than the tree says, and what `read` throws; then the file's bytes mean nothing. Not synced.
std::uint64_t write_image(const ImageTree& tree, const std::vector<std::size_t>& order, const ReadImageFile& read,
                          const ImageOptions& options, const Descriptor& file, const std::filesystem::path& path);

}  // namespace sealift::bundle
