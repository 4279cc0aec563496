// SPDX-License-Identifier: Apache-2.0
// Folder by folder, each once: an image in which a folder stands in two places, or with more names than it says, is
// refused before it takes memory. Blocks that were uncompressed last are kept, since small files share them.
#include "bundle/image/image_reader.hpp"

#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>
#include <set>
#include <unordered_map>

#include "bundle/image/inode_reader.hpp"
#include "bundle/image/read_file.hpp"
#include "bundle/image/squashfs.hpp"

namespace sealift::bundle {

using namespace detail;

namespace {

constexpr std::uint64_t kMaxTable = std::uint64_t{1} << 30;  // bytes of inodes or folders, compressed
constexpr std::uint64_t kNoTable = ~std::uint64_t{0};
constexpr std::size_t kBlocksKept = 128;  // 16 MiB of our blocks

}  // namespace

struct ImageReader::Tables {
  explicit Tables(const CheckedRange& bytes, std::string name) : bytes(bytes), name(std::move(name)) {}

  const CheckedRange& bytes;
  const std::string name;
  ReadFile file{bytes, name};
  sqfs_super_t super{};
  SqfsObject<sqfs_compressor_t> uncompressor;  // keeps nothing between its calls
  std::vector<sqfs_fragment_t> fragments;
  std::unordered_map<std::size_t, Blocks> blocks;  // by node

  using Block = std::shared_ptr<const Bytes>;
  std::mutex guard;
  std::list<std::pair<std::uint64_t, Block>> kept;  // by place in the image, the last used in front

  void read_super() {
    file.check(sqfs_super_read(&super, file.get()));
    if (super.compression_id != SQFS_COMP_ZSTD) file.refuse("another compression than zstd");
    if (super.bytes_used > bytes.size()) file.refuse("an image of more bytes than there are");
    if (super.inode_table_start >= super.directory_table_start || super.directory_table_start > super.bytes_used ||
        super.bytes_used - super.inode_table_start > kMaxTable)
      file.refuse("tables that cannot be where they are said to be");
    if (super.inode_count > kMaxNodes)
      throw Error(ErrorCode::CannotCheck, {.what = "an image has more names than this program reads",
                                           .where = name,
                                           .expected = "at most " + std::to_string(kMaxNodes),
                                           .got = std::to_string(super.inode_count)});
    uncompressor = zstd_compressor(super.block_size, true);
  }

  // The library takes memory for all that the super block claims, so that is held to what an image can have: each
  // fragment has the end of a file, and each block of the table a place in the list of such places.
  void read_fragments() {
    if ((super.flags & SQFS_FLAG_NO_FRAGMENTS) != 0 || super.fragment_table_start == kNoTable) return;
    constexpr std::uint64_t kBlock = SQFS_META_BLOCK_SIZE;
    const std::uint64_t size = std::uint64_t{super.fragment_entry_count} * sizeof(sqfs_fragment_t);
    const std::uint64_t places = (size + kBlock - 1) / kBlock * sizeof(std::uint64_t);
    if (super.fragment_entry_count > super.inode_count || super.fragment_table_start > super.bytes_used ||
        places > super.bytes_used - super.fragment_table_start)
      file.refuse("more fragments than an image of its size has");
    const SqfsObject<sqfs_frag_table_t> table(sqfs_frag_table_create(0));
    file.check(sqfs_frag_table_read(table.get(), file.get(), &super, uncompressor.get()));
    fragments.resize(sqfs_frag_table_get_size(table.get()));
    for (std::size_t i = 0; i < fragments.size(); ++i)
      file.check(sqfs_frag_table_lookup(table.get(), static_cast<sqfs_u32>(i), &fragments[i]));
  }

  Block stored(std::uint64_t place, std::uint32_t size_word, std::uint32_t whole) {
    {
      const std::lock_guard lock(guard);
      for (auto one = kept.begin(); one != kept.end(); ++one)
        if (one->first == place) {
          kept.splice(kept.begin(), kept, one);
          return kept.front().second;
        }
    }
    const Block block = uncompressed(place, size_word, whole);
    const std::lock_guard lock(guard);
    kept.emplace_front(place, block);
    if (kept.size() > kBlocksKept) kept.pop_back();
    return block;
  }

  // `whole`: how many bytes come out of it at most.
  Block uncompressed(std::uint64_t place, std::uint32_t size_word, std::uint32_t whole) {
    const std::uint32_t stored_size = SQFS_ON_DISK_BLOCK_SIZE(size_word);
    if (stored_size > super.block_size || place > super.bytes_used || stored_size > super.bytes_used - place)
      file.refuse("a block outside of the image");
    Bytes raw(stored_size);
    bytes.read(place, raw);
    if (!SQFS_IS_BLOCK_COMPRESSED(size_word)) return std::make_shared<const Bytes>(std::move(raw));
    Bytes out(whole);
    const sqfs_s32 count = uncompressor->do_block(uncompressor.get(), reinterpret_cast<const sqfs_u8*>(raw.data()),
                                                  stored_size, reinterpret_cast<sqfs_u8*>(out.data()), whole);
    if (count <= 0) file.refuse("a block that cannot be uncompressed");
    out.resize(static_cast<std::size_t>(count));
    return std::make_shared<const Bytes>(std::move(out));
  }

  // Block `index` of a file; nullptr: zeros alone.
  Block block(const Blocks& there, std::size_t index) {
    if (index < there.sizes.size()) {
      if (SQFS_IS_SPARSE_BLOCK(there.sizes[index])) return nullptr;
      std::uint64_t place = there.begin;
      for (std::size_t i = 0; i < index; ++i) place += SQFS_ON_DISK_BLOCK_SIZE(there.sizes[i]);
      return stored(place, there.sizes[index], super.block_size);
    }
    if (there.fragment >= fragments.size()) file.refuse("the end of a file in no block");
    const sqfs_fragment_t& fragment = fragments[there.fragment];
    return stored(fragment.start_offset, fragment.size, super.block_size);
  }
};

ImageReader::ImageReader(const CheckedRange& bytes, std::string name)
    : tables_(std::make_unique<Tables>(bytes, std::move(name))) {
  Tables& tables = *tables_;
  tables.read_super();
  tables.read_fragments();
  InodeReader reader(tables.file, *tables.uncompressor, tables.super);

  std::vector<Inode> folders;  // by their place in `waiting`
  std::vector<std::size_t> waiting;
  std::set<std::uint32_t> known;  // numbers of folders: one that stands in two places would be read twice
  const auto add = [&](Inode inode, std::string node_name, std::size_t parent) {
    if (nodes_.size() >= tables.super.inode_count) tables.file.refuse("more names than it says");
    Node node{
        .name = std::move(node_name), .parent = parent, .mode = inode.mode, .size = inode.size, .time = inode.time};
    const std::size_t index = nodes_.size();
    switch (inode.type) {
      case Inode::Type::Folder:
        if (!known.insert(inode.number).second) tables.file.refuse("a folder in two places");
        node.links = inode.links;
        waiting.push_back(index);
        folders.push_back(std::move(inode));
        break;
      case Inode::Type::File:
        node.type = Type::File;
        tables.blocks.emplace(index, std::move(inode.blocks));
        break;
      case Inode::Type::Link:
        node.type = Type::Link;
        node.size = inode.target.size();
        node.target = std::move(inode.target);
        break;
    }
    nodes_.push_back(std::move(node));
    if (index != 0) nodes_[parent].children.push_back(index);
  };

  Inode root = reader.root();
  if (root.type != Inode::Type::Folder) tables.file.refuse("a root other than a folder");
  add(std::move(root), "", 0);
  for (std::size_t next = 0; next < waiting.size(); ++next) {
    Inode folder = std::move(folders[next]);  // since `folders` grows
    while (auto child = reader.next(folder)) add(std::move(child->inode), std::move(child->name), waiting[next]);
    const auto by_name = [&](std::size_t a, std::size_t b) { return nodes_[a].name < nodes_[b].name; };
    std::vector<std::size_t>& children = nodes_[waiting[next]].children;
    if (!std::is_sorted(children.begin(), children.end(), by_name)) tables.file.refuse("a folder that is not sorted");
    const auto twin = [&](std::size_t a, std::size_t b) { return nodes_[a].name == nodes_[b].name; };
    if (std::adjacent_find(children.begin(), children.end(), twin) != children.end())
      tables.file.refuse("a folder with two equal names");
  }
}

ImageReader::~ImageReader() = default;

std::uint64_t ImageReader::size() const {
  return tables_->super.bytes_used;
}

std::optional<std::size_t> ImageReader::child(std::size_t folder, std::string_view name) const {
  const std::vector<std::size_t>& children = nodes_[folder].children;
  const auto there =
      std::lower_bound(children.begin(), children.end(), name,
                       [&](std::size_t one, std::string_view wanted) { return nodes_[one].name < wanted; });
  if (there == children.end() || nodes_[*there].name != name) return std::nullopt;
  return *there;
}

std::size_t ImageReader::read(std::size_t file, std::uint64_t offset, std::span<std::byte> out) const {
  const std::uint64_t size = nodes_[file].size;
  if (offset >= size) return 0;
  out = out.first(static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), size - offset)));
  const Blocks& there = tables_->blocks.at(file);
  const std::uint32_t whole = tables_->super.block_size;
  for (std::size_t done = 0; done < out.size();) {
    const std::uint64_t at = offset + done;
    const auto index = static_cast<std::size_t>(at / whole);
    std::size_t inside = static_cast<std::size_t>(at % whole);
    const std::size_t rest = static_cast<std::size_t>(std::min<std::uint64_t>(whole - inside, size - at));
    const std::size_t count = std::min(rest, out.size() - done);
    if (const Tables::Block block = tables_->block(there, index); !block) {
      std::memset(out.data() + done, 0, count);
    } else {
      if (index >= there.sizes.size()) inside += there.fragment_offset;
      if (inside > block->size() || count > block->size() - inside) tables_->file.refuse("a block that is too short");
      std::memcpy(out.data() + done, block->data() + inside, count);
    }
    done += count;
  }
  return out.size();
}

}  // namespace sealift::bundle
