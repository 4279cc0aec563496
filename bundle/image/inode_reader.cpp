// SPDX-License-Identifier: Apache-2.0
// The layout of inodes is that of SquashFS 4.0, as libsquashfs's headers declare it: a head that all have, then a body
// by type. What an extended folder's index says is not read, since folders are read from their beginning.
#include "bundle/image/inode_reader.hpp"

#include <algorithm>
#include <bit>

namespace sealift::bundle::detail {

static_assert(std::endian::native == std::endian::little, "the image's numbers are taken as they are");

namespace {

constexpr std::uint32_t kMaxName = 255;     // NAME_MAX
constexpr std::uint32_t kMaxTarget = 4095;  // PATH_MAX, without its end
constexpr std::size_t kPiece = 65536;       // blocks of a file that memory is taken for at a time

SqfsObject<sqfs_meta_reader_t> table(ReadFile& file, sqfs_compressor_t& uncompressor, std::uint64_t begin,
                                     std::uint64_t end) {
  SqfsObject<sqfs_meta_reader_t> reader(sqfs_meta_reader_create(file.get(), &uncompressor, begin, end));
  if (!reader) file.refuse("out of memory");
  return reader;
}

}  // namespace

InodeReader::InodeReader(ReadFile& file, sqfs_compressor_t& uncompressor, const sqfs_super_t& super)
    : file_(file),
      super_(super),
      inodes_(table(file, uncompressor, super.inode_table_start, super.directory_table_start)),
      folders_(table(file, uncompressor, super.directory_table_start,
                     std::min({super.id_table_start, super.fragment_table_start, super.export_table_start}))) {}

std::optional<InodeReader::Named> InodeReader::next(Inode& folder) {
  sqfs_dir_entry_t* entry = nullptr;
  sqfs_u64 reference = 0;
  const int got = sqfs_meta_reader_readdir(folders_.get(), &folder.list, &entry, nullptr, &reference);
  file_.check(got);
  if (got > 0) return std::nullopt;
  const std::unique_ptr<sqfs_dir_entry_t, SqfsFreer> named(entry);
  Named next;
  next.name.assign(reinterpret_cast<const char*>(named->name), std::size_t{named->size} + 1);
  if (next.name.size() > kMaxName || next.name.find('/') != next.name.npos || next.name.find('\0') != next.name.npos ||
      next.name == "." || next.name == "..")
    file_.refuse("a name that no file can have");
  spend(next.name.size());
  next.inode = read(reference);
  return next;
}

Inode InodeReader::read(std::uint64_t reference) {
  const std::uint64_t block = reference >> 16;
  if (block >= super_.directory_table_start - super_.inode_table_start) file_.refuse("an inode outside of the table");
  file_.check(sqfs_meta_reader_seek(inodes_.get(), super_.inode_table_start + block, reference & 0xFFFF));
  const auto head = take<sqfs_inode_t>();
  Inode inode{.mode = head.mode & 07777U, .time = head.mod_time, .number = head.inode_number};
  sqfs_inode_generic_t listed{.base = head};  // a folder, as the library wants it
  switch (head.type) {
    case SQFS_INODE_DIR:
      listed.data.dir = take<sqfs_inode_dir_t>();
      inode.links = listed.data.dir.nlink;
      break;
    case SQFS_INODE_EXT_DIR:
      listed.data.dir_ext = take<sqfs_inode_dir_ext_t>();
      inode.links = listed.data.dir_ext.nlink;
      break;
    case SQFS_INODE_FILE: {
      const auto body = take<sqfs_inode_file_t>();
      inode.size = body.file_size;
      inode.blocks = {
          .begin = body.blocks_start, .fragment = body.fragment_index, .fragment_offset = body.fragment_offset};
      return take_blocks(inode), inode;
    }
    case SQFS_INODE_EXT_FILE: {
      const auto body = take<sqfs_inode_file_ext_t>();
      inode.size = body.file_size;
      inode.blocks = {
          .begin = body.blocks_start, .fragment = body.fragment_idx, .fragment_offset = body.fragment_offset};
      return take_blocks(inode), inode;
    }
    case SQFS_INODE_SLINK:
    case SQFS_INODE_EXT_SLINK:
      inode.type = Inode::Type::Link;
      take_target(inode, take<sqfs_inode_slink_t>().target_size);
      return inode;
    default:
      file_.refuse("something other than a file, folder or link");
  }
  file_.check(sqfs_readdir_state_init(&inode.list, &super_, &listed));
  return inode;
}

template <class Struct>
Struct InodeReader::take() {
  Struct body{};
  file_.check(sqfs_meta_reader_read(inodes_.get(), &body, sizeof(body)));
  return body;
}

// A size that is claimed costs nothing before its blocks were there to be read.
void InodeReader::take_blocks(Inode& file) {
  file.type = Inode::Type::File;
  const bool shares = file.blocks.fragment != kNoFragment && file.blocks.fragment_offset != kNoFragment;
  const std::uint64_t whole = super_.block_size;
  std::uint64_t count = file.size / whole + (file.size % whole != 0 && !shares ? 1 : 0);
  if (count > kMaxText / sizeof(std::uint32_t)) file_.refuse("a file of more blocks than any image has");
  spend(count * sizeof(std::uint32_t));
  std::vector<std::uint32_t>& sizes = file.blocks.sizes;
  while (count > 0) {
    const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(count, kPiece));
    const std::size_t before = sizes.size();
    sizes.resize(before + piece);
    file_.check(sqfs_meta_reader_read(inodes_.get(), sizes.data() + before, piece * sizeof(std::uint32_t)));
    count -= piece;
  }
}

void InodeReader::take_target(Inode& link, std::uint32_t size) {
  if (size > kMaxTarget) file_.refuse("a link that is longer than any path");
  spend(size);
  link.target.resize(size);
  file_.check(sqfs_meta_reader_read(inodes_.get(), link.target.data(), size));
}

void InodeReader::spend(std::uint64_t bytes) {
  if (bytes > left_)
    throw Error(ErrorCode::CannotCheck, {.what = "an image has more names and blocks than this program reads",
                                         .where = file_.name(),
                                         .expected = "at most " + std::to_string(kMaxText) + " bytes of them",
                                         .got = "more"});
  left_ -= bytes;
}

}  // namespace sealift::bundle::detail
