// SPDX-License-Identifier: Apache-2.0
// One table from errno to a remedy, so that every operation on a disk gives the same advice for the same failure.
#include "installer/disk/disk_error.hpp"

#include <cerrno>
#include <cstring>

#include "sealift/bundle/core/error.hpp"

namespace sealift::installer {

namespace {

const char* remedy_of(int error) {
  switch (error) {
    case ENOSPC:
      return "make room there (df -h, df -i) and run this again; what was finished is not done again";
    case EDQUOT:
      return "have your quota raised, or remove files of yours there, and run this again; what was finished is not "
             "done again";
    case EROFS:
      return "the file system was mounted read-only, or became so after a fault (see dmesg); when it can be written to "
             "again, run this again";
    case EIO:
      return "the disk below failed (see dmesg); replace it, or choose a --prefix on another one";
    case EMFILE:
    case ENFILE:
      return "allow more open files (ulimit -n) and run this again";
    case EFBIG:
      return "raise the limit of a file's size (ulimit -f), or choose a file system that takes larger files";
    case ESTALE:
      return "the file server no longer knows this folder; mount it again and run this again";
    case EXDEV:
      return "this lies in a layer below, as a container's image has it, or on a mount of its own; change it where "
             "that "
             "layer is made, or use one file system for the whole prefix";
    case EACCES:
    case EPERM:
      return "run this as the user who owns the prefix, or choose another --prefix";
    default:
      return "";
  }
}

}  // namespace

void throw_disk_error(std::string what, const std::filesystem::path& where, int error) {
  const bundle::ErrorCode code = error == ENOSPC || error == EDQUOT ? bundle::ErrorCode::Space
                                 : error == ENOENT                  ? bundle::ErrorCode::Missing
                                                                    : bundle::ErrorCode::Io;
  throw bundle::Error(
      code, {.what = std::move(what), .where = where.string(), .got = std::strerror(error), .next = remedy_of(error)});
}

}  // namespace sealift::installer
