// SPDX-License-Identifier: Apache-2.0
// A file as memory: what a patch builds on may be larger than the memory that a program wants to take, and is read
// here and there. Only for files of the machine's own disk: where a disk fails under a mapping, the process is killed.
#pragma once

#include <cstdint>
#include <filesystem>

#include "sealift/bundle/core/bytes.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::bundle {

class MappedFile {
 public:
  // `file` is open for reading and has exactly `size` bytes, else throws Digest, naming `path`. The descriptor is not
  // needed any more. Throws Io.
  MappedFile(const Descriptor& file, std::uint64_t size, const std::filesystem::path& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  ByteView bytes() const { return bytes_; }

 private:
  ByteView bytes_;
};

}  // namespace sealift::bundle
