// SPDX-License-Identifier: Apache-2.0
// One volume opened for reading. A caller who wants each byte once bypasses the page cache: copying gigabytes into it
// costs more than hashing them, and evicts what others have there. Ranges that are cached already are still read from
// the cache, since a medium may be slow and its volumes may just have been verified.
#pragma once

#include <cstdint>
#include <filesystem>

#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/payload/chunk_buffer.hpp"

namespace sealift::bundle {

class VolumeInput : public InputFile {
 public:
  // With `read_once`, reads may bypass the page cache where the file system supports it (O_DIRECT).
  explicit VolumeInput(const std::filesystem::path& path, bool read_once = false);

  // Whether read_past_the_cache would read this range: it begins on a page boundary and is mostly not cached.
  bool passes_the_cache(std::uint64_t offset, std::size_t count) const;

  // Fills the beginning of `buffer` from `offset` and returns how many bytes that is; fewer than its size where this
  // file system wants the rest read as usual. Throws Io. Safe from several threads.
  std::size_t read_past_the_cache(std::uint64_t offset, ChunkBuffer& buffer) const;

 private:
  void open_past_the_cache();
  bool is_in_memory(std::uint64_t offset, std::size_t count) const;

  Descriptor direct_;
};

}  // namespace sealift::bundle
