// SPDX-License-Identifier: Apache-2.0
// System calls of the program under test, counted and disturbed, with no door for it in the program: the linker puts
// these in the calls' place (--wrap, see tests/installer/CMakeLists.txt). For one source of such a program.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "bundle/core/openssl.hpp"

extern "C" {
ssize_t __real_pread(int fd, void* buffer, size_t size, off_t offset);
ssize_t __real_write(int fd, const void* buffer, size_t size);
int __real_fsync(int fd);
int __real_EVP_DigestUpdate(EVP_MD_CTX* context, const void* bytes, size_t size);
}

namespace sealift::test {

struct SystemCalls {
  std::filesystem::path medium;  // below it the bytes are counted, and a read fails
  std::atomic<std::uint64_t> reads{0}, bytes_read{0}, bytes_hashed{0};
  std::uint64_t fails_at = 0;  // the number of the read that fails; 0: none
  int error = EIO;
  std::function<void(std::size_t)> after_hash;  // gets the number of bytes that were hashed, in the thread that did
  bool storm = false;                           // every second call is interrupted, and reads and writes are short
  std::atomic<std::uint64_t> calls{0};

  bool interrupts() {
    if (!storm || ++calls % 2 == 0) return false;
    errno = EINTR;
    return true;
  }
  std::size_t shortened(std::size_t size) { return storm && size > 1 ? 1 + calls % (size < 4096 ? size : 4096) : size; }
  bool is_medium(int fd) const {
    std::error_code ignored;
    const std::string path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), ignored).string();
    return !medium.empty() && path.starts_with(medium.string() + "/");
  }
};

inline std::atomic<SystemCalls*> watching{nullptr};

// Watches while it lives.
class Watch {
 public:
  explicit Watch(SystemCalls& calls) { watching = &calls; }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() { watching = nullptr; }
};

}  // namespace sealift::test

extern "C" {

ssize_t __wrap_pread(int fd, void* buffer, size_t size, off_t offset) {
  sealift::test::SystemCalls* calls = sealift::test::watching;
  if (calls == nullptr) return __real_pread(fd, buffer, size, offset);
  if (calls->interrupts()) return -1;
  const bool medium = calls->is_medium(fd);
  if (medium && ++calls->reads == calls->fails_at) {
    errno = calls->error;
    return -1;
  }
  const ssize_t count = __real_pread(fd, buffer, calls->shortened(size), offset);
  if (medium && count > 0) calls->bytes_read += static_cast<std::uint64_t>(count);
  return count;
}

ssize_t __wrap_write(int fd, const void* buffer, size_t size) {
  sealift::test::SystemCalls* calls = sealift::test::watching;
  if (calls == nullptr) return __real_write(fd, buffer, size);
  return calls->interrupts() ? -1 : __real_write(fd, buffer, calls->shortened(size));
}

int __wrap_fsync(int fd) {
  sealift::test::SystemCalls* calls = sealift::test::watching;
  return calls != nullptr && calls->interrupts() ? -1 : __real_fsync(fd);
}

int __wrap_syncfs(int) {  // the machine's disk is not what is tested
  sealift::test::SystemCalls* calls = sealift::test::watching;
  return calls != nullptr && calls->interrupts() ? -1 : 0;
}

int __wrap_EVP_DigestUpdate(EVP_MD_CTX* context, const void* bytes, size_t size) {
  sealift::test::SystemCalls* const calls = sealift::test::watching;
  if (calls != nullptr) calls->bytes_hashed += size;
  const int result = __real_EVP_DigestUpdate(context, bytes, size);
  if (calls != nullptr && calls->after_hash) calls->after_hash(size);
  return result;
}

}  // extern "C"
