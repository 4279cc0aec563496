// SPDX-License-Identifier: Apache-2.0
// A SquashFS image as a tree of names in memory and a way to read its files. Its tables are read once, at the
// beginning, by libsquashfs; blocks are looked up and uncompressed here, from checked bytes, by any number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bundle/image/checked_range.hpp"
#include "sealift/bundle/core/bytes.hpp"

namespace sealift::bundle {

class ImageReader {
 public:
  enum class Type { Folder, File, Link };
  struct Node {
    std::string name;  // "" of the root, which is node 0
    std::size_t parent = 0;
    Type type = Type::Folder;
    std::uint32_t mode = 0;  // permissions alone
    std::uint64_t size = 0;  // bytes of a file, or of a link's target
    std::uint64_t time = 0;  // seconds since 1970
    std::uint32_t links = 1;
    std::string target;                 // of a link
    std::vector<std::size_t> children;  // of a folder, by name
  };

  // Reads the tables. `bytes` outlives this; `name` is for messages. Throws Format for anything but an image or one
  // with other features than ours have, CannotCheck for one with more than `kMaxNodes` names; and what reading throws.
  ImageReader(const CheckedRange& bytes, std::string name);
  ImageReader(const ImageReader&) = delete;
  ImageReader& operator=(const ImageReader&) = delete;
  ~ImageReader();

  static constexpr std::uint32_t kMaxNodes = 8'000'000;

  const std::vector<Node>& nodes() const { return nodes_; }
  std::optional<std::size_t> child(std::size_t folder, std::string_view name) const;
  std::uint64_t size() const;  // bytes of the image

  // Fills `out` with what the file has from `offset` on, and returns how much that is. Throws Digest, Io as reading
  // does, Format for a block that is not what the tables say. Safe from several threads.
  std::size_t read(std::size_t file, std::uint64_t offset, std::span<std::byte> out) const;

 private:
  struct Tables;

  std::vector<Node> nodes_;
  std::unique_ptr<Tables> tables_;
};

}  // namespace sealift::bundle
