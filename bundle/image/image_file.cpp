// SPDX-License-Identifier: Apache-2.0
// Short writes go on, as write(2) allows them; a read past the end is an error, since nothing asks for one.
#include "bundle/image/image_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace sealift::bundle::detail {

ImageFile::ImageFile(const Descriptor& open, std::filesystem::path path) : file_{}, path_(std::move(path)) {
  file_.base.destroy = [](sqfs_object_t*) {};
  file_.read_at = read_at;
  file_.write_at = write_at;
  file_.get_size = get_size;
  file_.truncate = truncate;
  file_.descriptor = open.get();
}

void ImageFile::check(int error, const char* what) const {
  if (error >= 0) return;
  if (file_.error != 0) throw_errno(what, path_, file_.error);
  throw Error(ErrorCode::Io, {.what = what, .where = path_.string(), .got = sqfs_words(error)});
}

int ImageFile::read_at(sqfs_file_t* base, sqfs_u64 offset, void* buffer, std::size_t size) {
  File* const file = static_cast<File*>(base);
  for (std::size_t done = 0; done < size;) {
    const ssize_t count =
        ::pread(file->descriptor, static_cast<char*>(buffer) + done, size - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      if (file->error == 0) file->error = count < 0 ? errno : EIO;
      return SQFS_ERROR_IO;
    }
    done += static_cast<std::size_t>(count);
  }
  return 0;
}

int ImageFile::write_at(sqfs_file_t* base, sqfs_u64 offset, const void* buffer, std::size_t size) {
  File* const file = static_cast<File*>(base);
  for (std::size_t done = 0; done < size;) {
    const ssize_t count = ::pwrite(file->descriptor, static_cast<const char*>(buffer) + done, size - done,
                                   static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      if (file->error == 0) file->error = count < 0 ? errno : ENOSPC;
      return SQFS_ERROR_IO;
    }
    done += static_cast<std::size_t>(count);
  }
  file->size = std::max<std::uint64_t>(file->size, offset + size);
  return 0;
}

sqfs_u64 ImageFile::get_size(const sqfs_file_t* base) {
  return static_cast<const File*>(base)->size;
}

int ImageFile::truncate(sqfs_file_t* base, sqfs_u64 size) {
  File* const file = static_cast<File*>(base);
  if (::ftruncate(file->descriptor, static_cast<off_t>(size)) != 0) {
    if (file->error == 0) file->error = errno;
    return SQFS_ERROR_IO;
  }
  file->size = size;
  return 0;
}

}  // namespace sealift::bundle::detail
