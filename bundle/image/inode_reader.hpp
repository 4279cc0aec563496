// SPDX-License-Identifier: Apache-2.0
// The inodes and folders of an image, one by one, each bounded before memory is taken for it. libsquashfs's own reader
// of inodes takes what an inode claims: terabytes of blocks for a file's size, 4 GiB for a link's target.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bundle/image/read_file.hpp"
#include "bundle/image/squashfs.hpp"

namespace sealift::bundle::detail {

inline constexpr std::uint32_t kNoFragment = 0xFFFFFFFF;

// Where a file's bytes lie.
struct Blocks {
  std::uint64_t begin = 0;
  std::vector<std::uint32_t> sizes;  // of each block, with the format's bit for what is not compressed
  std::uint32_t fragment = kNoFragment;
  std::uint32_t fragment_offset = 0;
};

struct Inode {
  enum class Type { Folder, File, Link };
  Type type = Type::Folder;
  std::uint32_t mode = 0;    // permissions alone
  std::uint32_t time = 0;    // seconds since 1970
  std::uint32_t number = 0;  // of the inode, which several names may share
  std::uint32_t links = 1;
  std::uint64_t size = 0;       // bytes of a file
  Blocks blocks;                // of a file
  std::string target;           // of a link
  sqfs_readdir_state_t list{};  // of a folder: the place of its next name
};

// All functions throw Format for what no image of ours has, CannotCheck where names, targets and blocks are more than
// `kMaxText` bytes together, and what reading throws.
class InodeReader {
 public:
  static constexpr std::uint64_t kMaxText = std::uint64_t{1} << 30;

  // All outlive this.
  InodeReader(ReadFile& file, sqfs_compressor_t& uncompressor, const sqfs_super_t& super);

  Inode root() { return read(super_.root_inode_ref); }

  struct Named {
    std::string name;
    Inode inode;
  };
  // The folder's next name; none after the last one.
  std::optional<Named> next(Inode& folder);

 private:
  Inode read(std::uint64_t reference);
  template <class Struct>
  Struct take();
  void take_blocks(Inode& file);
  void take_target(Inode& link, std::uint32_t size);
  void spend(std::uint64_t bytes);

  ReadFile& file_;
  const sqfs_super_t& super_;
  SqfsObject<sqfs_meta_reader_t> inodes_, folders_;
  std::uint64_t left_ = kMaxText;
};

}  // namespace sealift::bundle::detail
