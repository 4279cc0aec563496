// SPDX-License-Identifier: Apache-2.0
// The door to libsquashfs: its headers, who frees what it made, and what its numbers mean. For bodies in this room
// alone. Of compressors there is zstd alone: no image of ours has another, and one that has is refused.
#pragma once

#include <sqfs/block.h>
#include <sqfs/block_processor.h>
#include <sqfs/block_writer.h>
#include <sqfs/compressor.h>
#include <sqfs/dir.h>
#include <sqfs/dir_writer.h>
#include <sqfs/error.h>
#include <sqfs/frag_table.h>
#include <sqfs/id_table.h>
#include <sqfs/inode.h>
#include <sqfs/io.h>
#include <sqfs/meta_reader.h>
#include <sqfs/meta_writer.h>
#include <sqfs/super.h>

#include <memory>
#include <string>

namespace sealift::bundle::detail {

struct SqfsDestroyer {
  void operator()(void* object) const { sqfs_destroy(object); }
};
struct SqfsFreer {
  void operator()(void* memory) const { sqfs_free(memory); }
};
template <class Object>
using SqfsObject = std::unique_ptr<Object, SqfsDestroyer>;
using SqfsInode = std::unique_ptr<sqfs_inode_generic_t, SqfsFreer>;

// The library's numbers as words, such as "out of memory".
std::string sqfs_words(int error);

// Compresses, or with `uncompresses` the other way, blocks of at most `block_size` bytes. Throws Io when there is no
// memory for it.
SqfsObject<sqfs_compressor_t> zstd_compressor(std::uint32_t block_size, bool uncompresses);

}  // namespace sealift::bundle::detail
