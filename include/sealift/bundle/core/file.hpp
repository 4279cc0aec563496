// SPDX-License-Identifier: Apache-2.0
// Reading files that a medium hands us: no links followed, regular files only, every short read an error.
#pragma once

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "sealift/bundle/core/bytes.hpp"
#include "sealift/bundle/core/error.hpp"

namespace sealift::bundle {

// Space when there is no room, Missing when there is no such file, else Io; `got` is the system's own sentence.
[[noreturn]] void throw_errno(std::string what, const std::filesystem::path& where, int error = errno);

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  // For a caller that closes it and wants to know how that went.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// A regular file opened for reading; its size is the one at opening.
class InputFile {
 public:
  // Throws Format for a link, a folder or a device, Missing and Io as the system says.
  explicit InputFile(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  int descriptor() const { return fd_.get(); }

  // Has the system fetch the range while we do something else. A hint: nothing depends on it, and nothing fails.
  void will_need(std::uint64_t offset, std::uint64_t count) const;

  // Fills `out` from `offset`; throws Io when the file ends before. Safe from several threads.
  void read_exactly(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  std::filesystem::path path_;
  Descriptor fd_;
  std::uint64_t size_ = 0;
};

// The whole of a small file; throws Format when it is larger than `max_size`, before anything is allocated.
std::string read_text(const std::filesystem::path& path, std::uint64_t max_size);

}  // namespace sealift::bundle
