// SPDX-License-Identifier: Apache-2.0
// Reading files that a medium hands us: no links followed, regular files only, every short read an error.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "sealift/bundle/core/bytes.hpp"
#include "sealift/bundle/core/error.hpp"

namespace sealift::bundle {

[[noreturn]] inline void throw_errno(std::string what, const std::filesystem::path& where, int error = errno) {
  const ErrorCode code = error == ENOSPC || error == EDQUOT ? ErrorCode::Space
                         : error == ENOENT                  ? ErrorCode::Missing
                                                            : ErrorCode::Io;
  throw Error(code, {.what = std::move(what), .where = where.string(), .got = std::strerror(error)});
}

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  // For who closes it and wants to know how that went.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// A regular file opened for reading; its size is the one at opening.
class InputFile {
 public:
  explicit InputFile(std::filesystem::path path) : path_(std::move(path)) {
    fd_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd_) {
      if (errno == ELOOP) refuse("a symbolic link");
      throw_errno("a file cannot be opened", path_);
    }
    struct stat status {};
    if (::fstat(fd_.get(), &status) != 0) throw_errno("a file cannot be examined", path_);
    if (!S_ISREG(status.st_mode)) refuse(S_ISDIR(status.st_mode) ? "a folder" : "a device, pipe or socket");
    size_ = static_cast<std::uint64_t>(status.st_size);
  }

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  int descriptor() const { return fd_.get(); }

  // Has the system fetch the range while we do something else. A hint: nothing depends on it, and nothing fails.
  void will_need(std::uint64_t offset, std::uint64_t count) const {
    ::posix_fadvise(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(count), POSIX_FADV_WILLNEED);
  }

  // Fills `out` from `offset`; throws Io when the file ends before. Safe from several threads.
  void read_exactly(std::uint64_t offset, std::span<std::byte> out) const {
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

 private:
  [[noreturn]] void refuse(const char* got) const {
    throw Error(
        ErrorCode::Format,
        {.what = "this is not a plain file", .where = path_.string(), .expected = "a regular file", .got = got});
  }

  std::filesystem::path path_;
  Descriptor fd_;
  std::uint64_t size_ = 0;
};

// The whole of a small file; throws Format when it is larger than `max_size`, before anything is allocated.
inline std::string read_text(const std::filesystem::path& path, std::uint64_t max_size) {
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
