// SPDX-License-Identifier: Apache-2.0
// The file that an image is written into, as libsquashfs wants to see it: written at places, read back where two blocks
// may be equal, cut where they were. Its callbacks cannot throw, so what the system said is kept for who asks.
#pragma once

#include <filesystem>

#include "bundle/image/squashfs.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::bundle::detail {

class ImageFile {
 public:
  // `open` is empty, may be read and written, and outlives this.
  ImageFile(const Descriptor& open, std::filesystem::path path);
  ImageFile(const ImageFile&) = delete;
  ImageFile& operator=(const ImageFile&) = delete;

  sqfs_file_t* get() { return &file_; }
  std::uint64_t size() const { return file_.size; }
  // Throws what the system said, else Io with the library's words; nothing where `error` is 0 or more.
  void check(int error, const char* what) const;

 private:
  struct File : sqfs_file_t {
    int descriptor = -1;
    std::uint64_t size = 0;
    int error = 0;  // the first errno
  };

  static int read_at(sqfs_file_t* file, sqfs_u64 offset, void* buffer, std::size_t size);
  static int write_at(sqfs_file_t* file, sqfs_u64 offset, const void* buffer, std::size_t size);
  static sqfs_u64 get_size(const sqfs_file_t* file);
  static int truncate(sqfs_file_t* file, sqfs_u64 size);

  File file_;
  std::filesystem::path path_;
};

}  // namespace sealift::bundle::detail
