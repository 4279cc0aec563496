// SPDX-License-Identifier: Apache-2.0
// Opens and reads plain files; see file.hpp.
#include "sealift/bundle/core/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace sealift::bundle {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, const char* got) {
  throw Error(ErrorCode::Format,
              {.what = "this is not a plain file", .where = path.string(), .expected = "a regular file", .got = got});
}

}  // namespace

void throw_errno(std::string what, const std::filesystem::path& where, int error) {
  const ErrorCode code = error == ENOSPC || error == EDQUOT ? ErrorCode::Space
                         : error == ENOENT                  ? ErrorCode::Missing
                                                            : ErrorCode::Io;
  throw Error(
      code, {.what = std::move(what),
             .where = where.string(),
             .got = std::strerror(error),
             .next = code == ErrorCode::Space ? "make room there (df -h, df -i), and run the same command again" : ""});
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

InputFile::InputFile(std::filesystem::path path) : path_(std::move(path)) {
  // Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
  fd_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd_) {
    if (errno == ELOOP) refuse(path_, "a symbolic link");
    throw_errno("a file cannot be opened", path_);
  }
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) throw_errno("a file cannot be examined", path_);
  if (!S_ISREG(status.st_mode)) refuse(path_, S_ISDIR(status.st_mode) ? "a folder" : "a device, pipe or socket");
  size_ = static_cast<std::uint64_t>(status.st_size);
}

void InputFile::will_need(std::uint64_t offset, std::uint64_t count) const {
  ::posix_fadvise(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(count), POSIX_FADV_WILLNEED);
}

void InputFile::read_exactly(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count = ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno("a file cannot be read at offset " + std::to_string(offset), path_);
    if (count == 0)
      throw Error(ErrorCode::Io, {.what = "a file ends early",
                                  .where = path_.string() + " at offset " + std::to_string(offset),
                                  .next = "copy it again from its source"});
    out = out.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

std::string read_text(const std::filesystem::path& path, std::uint64_t max_size) {
  const InputFile file(path);
  if (file.size() > max_size)
    throw Error(ErrorCode::Format, {.what = "a file is too large",
                                    .where = path.string(),
                                    .expected = "at most " + std::to_string(max_size) + " bytes",
                                    .got = std::to_string(file.size()) + " bytes"});
  std::string text(file.size(), '\0');
  file.read_exactly(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

}  // namespace sealift::bundle
