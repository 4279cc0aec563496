// SPDX-License-Identifier: Apache-2.0
// What the kernel says of a file's bytes without reading them: as long as nothing of it is different, nobody has
// written to the file through the kernel. A write, a change of mode or owner and a new name all move the time of
// change, which no call can set.
#pragma once

#include <sys/stat.h>

#include <cstdint>

namespace sealift::installer {

// All 0: of no file.
struct Stamp {
  std::uint64_t inode = 0;
  std::uint64_t size = 0;     // bytes
  std::int64_t modified = 0;  // nanoseconds since 1970
  std::int64_t changed = 0;   // nanoseconds since 1970

  explicit operator bool() const { return inode != 0; }
  bool operator==(const Stamp&) const = default;
  // Equal but for the time of change, which a further name of the file, or one less, moves as well.
  bool same_bytes(const Stamp& other) const {
    return inode == other.inode && size == other.size && modified == other.modified;
  }
};

inline Stamp stamp_of(const struct stat& status) {
  const auto nanoseconds = [](const timespec& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + std::int64_t{time.tv_nsec};
  };
  return {.inode = status.st_ino,
          .size = static_cast<std::uint64_t>(status.st_size),
          .modified = nanoseconds(status.st_mtim),
          .changed = nanoseconds(status.st_ctim)};
}

}  // namespace sealift::installer
