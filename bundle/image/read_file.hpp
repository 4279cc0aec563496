// SPDX-License-Identifier: Apache-2.0
// The checked bytes of an image as the file that libsquashfs reads. For bodies in this room alone.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "bundle/image/checked_range.hpp"
#include "bundle/image/squashfs.hpp"
#include "sealift/bundle/core/error.hpp"

namespace sealift::bundle::detail {

// A callback cannot throw, so what reading threw waits for check().
class ReadFile {
 public:
  // Both outlive this; `name` is for messages.
  ReadFile(const CheckedRange& bytes, const std::string& name) : file_{}, name_(name) {
    file_.base.destroy = [](sqfs_object_t*) {};
    file_.read_at = read_at;
    file_.write_at = [](sqfs_file_t*, sqfs_u64, const void*, std::size_t) -> int { return SQFS_ERROR_UNSUPPORTED; };
    file_.get_size = [](const sqfs_file_t* file) -> sqfs_u64 { return static_cast<const File*>(file)->bytes->size(); };
    file_.truncate = [](sqfs_file_t*, sqfs_u64) -> int { return SQFS_ERROR_UNSUPPORTED; };
    file_.bytes = &bytes;
  }
  ReadFile(const ReadFile&) = delete;
  ReadFile& operator=(const ReadFile&) = delete;

  sqfs_file_t* get() { return &file_; }
  const std::string& name() const { return name_; }

  // Throws what reading threw, or Format, where `error` is one of the library's.
  void check(int error) {
    if (error >= 0) return;
    if (file_.thrown) std::rethrow_exception(std::exchange(file_.thrown, nullptr));
    refuse(sqfs_words(error));
  }
  [[noreturn]] void refuse(const std::string& got) const {
    throw Error(ErrorCode::Format, {.what = "this is no image that can be read",
                                    .where = name_,
                                    .expected = "a SquashFS image as sealift-install makes it",
                                    .got = got,
                                    .next = "make it again with `sealift-install image`"});
  }

 private:
  struct File : sqfs_file_t {
    const CheckedRange* bytes = nullptr;
    std::exception_ptr thrown;
  };

  static int read_at(sqfs_file_t* base, sqfs_u64 offset, void* buffer, std::size_t size) {
    File* const file = static_cast<File*>(base);
    const std::uint64_t end = file->bytes->size();
    if (offset > end || size > end - offset) return SQFS_ERROR_OUT_OF_BOUNDS;
    try {
      file->bytes->read(offset, {static_cast<std::byte*>(buffer), size});
      return 0;
    } catch (...) {
      if (!file->thrown) file->thrown = std::current_exception();
      return SQFS_ERROR_IO;
    }
  }

  File file_;
  const std::string& name_;
};

}  // namespace sealift::bundle::detail
