// SPDX-License-Identifier: Apache-2.0
// flock, then the same file by its path; see named_lock.hpp.
#include "bundle/host/named_lock.hpp"

#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

namespace sealift::bundle {

Locking try_lock(const Descriptor& file, const std::filesystem::path& path) {
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return errno == EWOULDBLOCK ? Locking::Held : Locking::Without;
  struct stat held {
  }, named{};
  const bool same = ::fstat(file.get(), &held) == 0 && ::lstat(path.c_str(), &named) == 0 &&
                    held.st_dev == named.st_dev && held.st_ino == named.st_ino;
  return same ? Locking::Got : Locking::Gone;
}

std::optional<Descriptor> lock_named(const std::filesystem::path& path, const std::function<Descriptor()>& open) {
  for (;;) {
    Descriptor file = open();
    const Locking locking = try_lock(file, path);
    if (locking == Locking::Got) return file;
    if (locking == Locking::Held) return std::nullopt;
    if (locking == Locking::Without) throw_errno("a file cannot be locked", path);
  }
}

}  // namespace sealift::bundle
