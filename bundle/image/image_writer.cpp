// SPDX-License-Identifier: Apache-2.0
// Order in the file: super block -> blocks of files -> inodes -> folders -> fragments, owners -> super block again,
// with the places of all these. libsquashfs compresses and lays out; this says what, and in which order.
#include "bundle/image/image_writer.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <unordered_map>

#include "bundle/image/image_file.hpp"

namespace sealift::bundle {

using namespace detail;

namespace {

constexpr std::size_t kSectors = 4096;    // what a loop device and dm-verity count in
constexpr unsigned kBlocksInFlight = 40;  // for each thread that compresses: work while the disk is waited for
constexpr std::uint32_t kNoExtendedAttributes = 0xFFFFFFFF;
constexpr const char* kCannotWrite = "an image cannot be written";

std::uint32_t seconds_of(Time time) {
  const auto seconds = time.time_since_epoch().count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(seconds, 0, std::numeric_limits<std::uint32_t>::max()));
}

std::uint16_t mode_of(const ImageNode& node) {
  switch (node.type) {
    case ImageNode::Type::Folder:
      return 0040755;
    case ImageNode::Type::Link:
      return 0120777;
    case ImageNode::Type::File:
      break;
  }
  return node.executable ? 0100555 : 0100444;
}

const char* name_of(const ImageNode& node) {
  const std::size_t slash = node.path.rfind('/');
  return node.path.c_str() + (slash == std::string::npos ? 0 : slash + 1);
}

// One image being written; each member function is a step of it, in this order.
class Writing {
 public:
  Writing(const ImageTree& tree, const ImageOptions& options, const Descriptor& file, const std::filesystem::path& path)
      : tree_(tree),
        time_(seconds_of(options.time)),
        file_(file, path),
        compressor_(zstd_compressor(kImageBlock, false)),
        fragments_(sqfs_frag_table_create(0)),
        owners_(sqfs_id_table_create(0)),
        inodes_(tree.size()) {
    check(sqfs_super_init(&super_, kImageBlock, time_, SQFS_COMP_ZSTD));
    check(sqfs_super_write(&super_, file_.get()));
    blocks_.reset(sqfs_block_writer_create(file_.get(), kSectors, 0));
    need(fragments_ && owners_ && blocks_);
    check(sqfs_id_table_id_to_index(owners_.get(), 0, &root_owner_));
    start_compressing(std::max(options.threads, 1u));
  }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;
  ~Writing() {
    compressing_.reset();  // it writes into the inodes
    for (sqfs_inode_generic_t* inode : inodes_) sqfs_free(inode);
  }

  void write_file(std::size_t index, const ReadImageFile& read) {
    const ImageNode& node = tree_[index];
    const std::uint32_t flags = node.size > kImageBlock ? SQFS_BLK_DONT_FRAGMENT : 0;  // one read less for its end
    check(sqfs_block_processor_begin_file(compressing_.get(), &inodes_[index], nullptr, flags));
    std::uint64_t got = 0;
    read(node, [&](ByteView piece) {
      if (piece.empty()) return;  // libsquashfs 1.2.0 would read from no block
      got += piece.size();
      check(sqfs_block_processor_append(compressing_.get(), piece.data(), piece.size()));
    });
    if (got != node.size)
      throw Error(ErrorCode::Format, {.what = "a file has another size than it is to have in the image",
                                      .where = node.path,
                                      .expected = std::to_string(node.size),
                                      .got = std::to_string(got)});
    check(sqfs_block_processor_end_file(compressing_.get()));
  }

  void write_tables() {
    check(sqfs_block_processor_finish(compressing_.get()));
    number_nodes();
    super_.inode_table_start = file_.size();
    inode_writer_.reset(sqfs_meta_writer_create(file_.get(), compressor_.get(), 0));
    folder_writer_.reset(sqfs_meta_writer_create(file_.get(), compressor_.get(), SQFS_META_WRITER_KEEP_IN_MEMORY));
    need(inode_writer_ && folder_writer_);
    listing_.reset(sqfs_dir_writer_create(folder_writer_.get(), 0));
    need(listing_ != nullptr);
    for (const std::size_t folder : folders_) {
      for (const std::size_t child : children_[folder])
        if (tree_[child].type != ImageNode::Type::Folder) write_leaf(child);
      write_folder(folder);
    }
    check(sqfs_meta_writer_flush(inode_writer_.get()));
    super_.root_inode_ref = references_.back();
    super_.directory_table_start = file_.size();
    check(sqfs_meta_writer_flush(folder_writer_.get()));
    check(sqfs_meta_write_write_to_file(folder_writer_.get()));
    check(sqfs_frag_table_write(fragments_.get(), file_.get(), &super_, compressor_.get()));
    check(sqfs_id_table_write(owners_.get(), file_.get(), &super_, compressor_.get()));
  }

  std::uint64_t finish() {
    super_.inode_count = static_cast<sqfs_u32>(tree_.size() + 1);
    super_.bytes_used = file_.size();
    check(sqfs_super_write(&super_, file_.get()));
    static constexpr std::array<char, kSectors> kZeros{};
    if (const std::size_t over = file_.size() % kSectors; over != 0)
      check(file_.get()->write_at(file_.get(), file_.size(), kZeros.data(), kSectors - over));
    return file_.size();
  }

 private:
  void check(int error) const { file_.check(error, kCannotWrite); }
  static void need(bool made) {
    if (!made) throw Error(ErrorCode::Io, {.what = kCannotWrite, .got = "out of memory"});
  }

  void start_compressing(unsigned threads) {
    uncompressor_ = zstd_compressor(kImageBlock, true);
    sqfs_block_processor_desc_t how{};
    how.size = sizeof how;
    how.max_block_size = kImageBlock;
    how.num_workers = threads;
    how.max_backlog = kBlocksInFlight * threads;
    how.cmp = compressor_.get();
    how.wr = blocks_.get();
    how.tbl = fragments_.get();
    how.file = file_.get();  // equal hashes are not believed: the bytes are compared
    how.uncmp = uncompressor_.get();
    sqfs_block_processor_t* made = nullptr;
    check(sqfs_block_processor_create_ex(&how, &made));
    compressing_.reset(made);
  }

  // Folders in the order in which they are written, each after those in it, the root last; and each node's number, by
  // the same order, so that names of one folder have numbers and inodes that lie together.
  void number_nodes() {
    const std::size_t root = tree_.size();
    children_.resize(root + 1);
    parents_.assign(root + 1, root);
    std::unordered_map<std::string_view, std::size_t> known{{"", root}};
    for (std::size_t i = 0; i < root; ++i) {
      const std::string_view path = tree_[i].path;
      const std::size_t slash = path.rfind('/');
      parents_[i] = known.at(slash == path.npos ? std::string_view() : path.substr(0, slash));
      children_[parents_[i]].push_back(i);
      if (tree_[i].type == ImageNode::Type::Folder) {
        known.emplace(path, i);
        folders_.push_back(i);
      }
    }
    std::reverse(folders_.begin(), folders_.end());
    folders_.push_back(root);
    numbers_.resize(root + 1);
    references_.resize(root + 1);
    std::uint32_t next = 1;
    for (const std::size_t folder : folders_) {
      for (const std::size_t child : children_[folder])
        if (tree_[child].type != ImageNode::Type::Folder) numbers_[child] = next++;
      numbers_[folder] = next++;
    }
  }

  void write_inode(std::size_t index, std::uint16_t mode, sqfs_inode_generic_t& inode) {
    inode.base.mode = mode;
    inode.base.uid_idx = root_owner_;
    inode.base.gid_idx = root_owner_;
    inode.base.mod_time = time_;
    inode.base.inode_number = numbers_[index];
    sqfs_u64 block = 0;
    sqfs_u32 offset = 0;
    sqfs_meta_writer_get_position(inode_writer_.get(), &block, &offset);
    references_[index] = block << 16 | offset;
    check(sqfs_meta_writer_write_inode(inode_writer_.get(), &inode));
  }

  void write_leaf(std::size_t index) {
    const ImageNode& node = tree_[index];
    if (node.type == ImageNode::Type::File) return write_inode(index, mode_of(node), *inodes_[index]);
    const SqfsInode inode(
        static_cast<sqfs_inode_generic_t*>(std::calloc(1, sizeof(sqfs_inode_generic_t) + node.target.size())));
    need(inode != nullptr);
    inode->base.type = SQFS_INODE_SLINK;
    inode->data.slink.nlink = 1;
    inode->data.slink.target_size = static_cast<sqfs_u32>(node.target.size());
    inode->payload_bytes_available = inode->payload_bytes_used = static_cast<sqfs_u32>(node.target.size());
    std::copy(node.target.begin(), node.target.end(), reinterpret_cast<char*>(inode->extra));
    write_inode(index, mode_of(node), *inode);
  }

  void write_folder(std::size_t index) {
    check(sqfs_dir_writer_begin(listing_.get(), 0));
    std::size_t folders = 0;
    for (const std::size_t child : children_[index]) {
      const ImageNode& node = tree_[child];
      folders += node.type == ImageNode::Type::Folder;
      check(
          sqfs_dir_writer_add_entry(listing_.get(), name_of(node), numbers_[child], references_[child], mode_of(node)));
    }
    check(sqfs_dir_writer_end(listing_.get()));
    const bool root = index == tree_.size();
    const std::uint32_t parent = root ? static_cast<std::uint32_t>(tree_.size() + 2) : numbers_[parents_[index]];
    const SqfsInode inode(sqfs_dir_writer_create_inode(listing_.get(), 0, kNoExtendedAttributes, parent));
    need(inode != nullptr);
    const auto links = static_cast<sqfs_u32>(folders + 2);
    (inode->base.type == SQFS_INODE_EXT_DIR ? inode->data.dir_ext.nlink : inode->data.dir.nlink) = links;
    write_inode(index, mode_of(root ? ImageNode{} : tree_[index]), *inode);
  }

  const ImageTree& tree_;
  const std::uint32_t time_;
  ImageFile file_;
  sqfs_super_t super_{};
  SqfsObject<sqfs_compressor_t> compressor_, uncompressor_;
  SqfsObject<sqfs_frag_table_t> fragments_;
  SqfsObject<sqfs_id_table_t> owners_;
  SqfsObject<sqfs_block_writer_t> blocks_;
  std::uint16_t root_owner_ = 0;
  std::vector<sqfs_inode_generic_t*> inodes_;  // of files; the library makes them and moves them while it writes
  SqfsObject<sqfs_block_processor_t> compressing_;
  // By the node's index in the tree, the root behind them.
  std::vector<std::vector<std::size_t>> children_;
  std::vector<std::size_t> parents_;
  std::vector<std::uint32_t> numbers_;
  std::vector<std::uint64_t> references_;
  std::vector<std::size_t> folders_;
  SqfsObject<sqfs_meta_writer_t> inode_writer_, folder_writer_;
  SqfsObject<sqfs_dir_writer_t> listing_;
};

}  // namespace

std::uint64_t write_image(const ImageTree& tree, const std::vector<std::size_t>& order, const ReadImageFile& read,
                          const ImageOptions& options, const Descriptor& file, const std::filesystem::path& path) {
  Writing writing(tree, options, file, path);
  for (const std::size_t index : order) writing.write_file(index, read);
  writing.write_tables();
  return writing.finish();
}

}  // namespace sealift::bundle
