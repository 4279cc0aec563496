// SPDX-License-Identifier: Apache-2.0
// mkdir -> flock -> is it still there? A run that cleans up may have taken it in between; then another one is made.
#include "installer/disk/nameless_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <random>
#include <span>
#include <string>

namespace sealift::installer {

namespace fs = std::filesystem;

namespace {

std::string new_name(std::string_view begin) {
  std::random_device random;
  const std::array<unsigned, 2> number{random(), random()};
  return std::string(begin) + bundle::to_hex(std::as_bytes(std::span(number)));
}

enum class Lock { Got, Held, Gone, None };

// None: this file system has no locks.
Lock try_lock(const fs::path& folder, bundle::Descriptor& lock) {
  lock = bundle::Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat opened {
  }, named{};
  if (!lock || ::fstat(lock.get(), &opened) != 0) return errno == ENOENT ? Lock::Gone : Lock::None;
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return errno == EWOULDBLOCK ? Lock::Held : Lock::None;
  const bool same =
      ::lstat(folder.c_str(), &named) == 0 && opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
  return same && opened.st_uid == ::geteuid() ? Lock::Got : Lock::Gone;
}

void remove_abandoned(Disk& disk, const fs::path& folder, std::string_view begin) {
  std::error_code error;
  for (fs::directory_iterator there(folder, error); !error && there != fs::directory_iterator();
       there.increment(error)) {
    if (!there->path().filename().string().starts_with(begin)) continue;
    bundle::Descriptor lock;
    if (try_lock(there->path(), lock) != Lock::Got) continue;
    try {
      disk.remove_tree(there->path());
    } catch (const bundle::Error&) {  // it stays, which hinders nobody
    }
  }
}

}  // namespace

NamelessFolder::NamelessFolder(Disk& disk, const fs::path& into, std::string_view begin) : disk_(disk) {
  remove_abandoned(disk, into, begin);
  Lock got = Lock::Gone;
  while (got == Lock::Gone || got == Lock::Held) {
    path_ = into / new_name(begin);
    try {
      disk_.make_folder(path_);
    } catch (const bundle::Error& error) {  // made, and gone before it had its mode
      if (error.code() != bundle::ErrorCode::Missing || !fs::is_directory(into)) throw;
      continue;
    }
    got = try_lock(path_, lock_);
  }
}

NamelessFolder::~NamelessFolder() {
  try {
    disk_.remove_tree(path_);
  } catch (const bundle::Error&) {  // no name that anybody waits for is lost
  }
}

void NamelessFolder::become(const fs::path& folder) {
  disk_.sync_all(path_);
  disk_.rename(path_, folder);
  disk_.sync_folder(folder.parent_path());
}

}  // namespace sealift::installer
