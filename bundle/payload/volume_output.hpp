// SPDX-License-Identifier: Apache-2.0
// One new volume, written at offsets by several threads at once. It is written past the system's page cache where the
// file system supports that: a bundle is read next on another machine, and copying gigabytes into the cache costs more
// than hashing them.
#pragma once

#include <cstdint>
#include <filesystem>

#include "sealift/bundle/core/file.hpp"

namespace sealift::bundle {

// Members throw Io, or Space when the disk is full. write() is safe from several threads.
class VolumeOutput {
 public:
  enum class Opening { New, Again };  // Again: a file that was closed, to go on with

  // New creates the file; an existing one is an error.
  explicit VolumeOutput(std::filesystem::path path, Opening opening = Opening::New);

  // Writes all of `bytes` at `offset`.
  void write(ByteView bytes, std::uint64_t offset) const;
  // The contents are durable once this returns.
  void sync() const;

 private:
  std::filesystem::path path_;
  Descriptor fd_;
  Descriptor direct_;  // not open where the file system has no O_DIRECT; the other one then does everything
};

}  // namespace sealift::bundle
