// SPDX-License-Identifier: Apache-2.0
// flock, then the same file by its path; see named_lock.hpp.
#include "bundle/host/named_lock.hpp"

#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

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
    if (locking == Locking::Without) throw_no_lock("a file cannot be locked", path, errno);
  }
}

void throw_no_lock(const std::string& what, const std::filesystem::path& path, int error) {
  constexpr int kOfServers = 524;  // ENOTSUPP, which clients of some file servers answer by mistake
  if (error != ENOSYS && error != EOPNOTSUPP && error != ENOLCK && error != EINVAL && error != kOfServers)
    throw_errno(what, path, error);
  throw Error(ErrorCode::Io,
              {.what = what,
               .where = path.string(),
               .expected = "a file system with locks",
               .got = std::strerror(error),
               .next = "have it mounted with locks (Lustre: the mount option flock; NFS: without nolock, "
                       "and rpc.statd running), or choose a folder on another file system"});
}

}  // namespace sealift::bundle
