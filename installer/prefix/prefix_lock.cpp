// SPDX-License-Identifier: Apache-2.0
// Taking the prefix lock never waits: an operator wants to know who is at work, not to watch a still cursor. The text
// in the lock file is only for that message; what counts is the kernel's lock: one of an open file, by fcntl, which NFS
// servers know, or by flock where the kernel has no other (gVisor).
#include "installer/prefix/prefix_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>

#include "bundle/host/named_lock.hpp"
#include "installer/host/time.hpp"
#include "installer/prefix/prefix_owner.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::installer {

namespace {

struct flock whole_file(short kind) {
  struct flock range {};
  range.l_type = kind;
  range.l_whence = SEEK_SET;
  return range;
}

bool lacks_own_locks(int error) {
  return error == EINVAL || error == ENOSYS;
}

// 0, or why not.
int lock_open_file(int file) {
  struct flock range = whole_file(F_WRLCK);
  if (::fcntl(file, F_OFD_SETLK, &range) == 0) return 0;
  if (!lacks_own_locks(errno)) return errno;
  return ::flock(file, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
}

bundle::Descriptor open_to_read(const Prefix& prefix) {
  return bundle::Descriptor(::open(prefix.lock().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
}

std::string holder_of(const bundle::Descriptor& file) {
  char text[256];
  const ssize_t count = ::pread(file.get(), text, sizeof text, 0);
  std::string holder = count > 0 ? bundle::SafePath::printable({text, static_cast<std::size_t>(count)}) : "";
  while (holder.ends_with('?')) holder.pop_back();  // the line break
  return holder.empty() ? "a process that has not said its name" : holder;
}

}  // namespace

PrefixLock::PrefixLock(const Prefix& prefix, Disk& disk, const char* verb) : disk_(disk) {
  require_own_prefix(prefix);  // before a folder is made where none may be
  disk.make_folders(prefix.folder());
  before_ = disk.anchor(prefix.folder());
  try {
    take(prefix, verb);
  } catch (...) {
    disk.anchor(std::move(before_));
    throw;
  }
}

void PrefixLock::take(const Prefix& prefix, const char* verb) {
  require_own_prefix(prefix);
  file_ = disk_.open_lock(prefix.lock());
  if (const int error = lock_open_file(file_.get()); error != 0) {
    if (error != EAGAIN && error != EACCES) bundle::throw_no_lock("the prefix cannot be locked", prefix.lock(), error);
    throw_held(prefix, "somebody else is changing this prefix");
  }
  utsname host{};
  ::uname(&host);
  const std::string text = std::string("sealift-install ") + verb + ", process " + std::to_string(::getpid()) + " on " +
                           host.nodename + " since " + now_utc() + "\n";
  // A failure here costs only the name in another run's message. Other nodes see the text once it is on the server, and
  // an NFS client may keep it back for half a minute, hence the sync.
  if (::ftruncate(file_.get(), 0) == 0 && ::pwrite(file_.get(), text.data(), text.size(), 0) > 0)
    ::fdatasync(file_.get());
}

bool PrefixLock::is_held(const Prefix& prefix) {
  const bundle::Descriptor file = open_to_read(prefix);
  struct flock range = whole_file(F_RDLCK);
  if (!file) return false;
  if (::fcntl(file.get(), F_OFD_GETLK, &range) == 0) return range.l_type != F_UNLCK;
  return lacks_own_locks(errno) && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

void PrefixLock::throw_held(const Prefix& prefix, std::string what) {
  throw bundle::Error(bundle::ErrorCode::Conflict, {.what = std::move(what),
                                                    .where = prefix.lock().string(),
                                                    .got = holder_of(open_to_read(prefix)),
                                                    .next = "wait until that has ended and run this again"});
}

}  // namespace sealift::installer
