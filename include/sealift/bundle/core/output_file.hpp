// SPDX-License-Identifier: Apache-2.0
// New files written from start to end: the mirror of file.hpp. What exists is never overwritten and links are never
// followed, so writing into a folder that somebody prepared cannot reach outside it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "sealift/bundle/core/bytes.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::bundle {

// A new file open for writing. Every member throws Io, or Space when the disk is full.
class OutputFile {
 public:
  // Creates the file; an existing one is an error.
  explicit OutputFile(std::filesystem::path path, mode_t mode = 0644);

  const std::filesystem::path& path() const { return path_; }
  // Bytes written so far.
  std::uint64_t size() const { return size_; }

  // Appends all of `bytes`.
  void write(ByteView bytes);
  // The contents are durable once this returns; the file's name is not.
  void sync() const;

 private:
  std::filesystem::path path_;
  Descriptor fd_;
  std::uint64_t size_ = 0;
};

// Creates a file with exactly this text and syncs it; where that fails there is none.
void write_text(const std::filesystem::path& path, std::string_view text, mode_t mode = 0644);

}  // namespace sealift::bundle
