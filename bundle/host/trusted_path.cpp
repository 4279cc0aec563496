// SPDX-License-Identifier: Apache-2.0
// Walks the path as the kernel does, a name at a time, and looks at each before it goes on. While nobody else may write
// the folders that were passed, nobody can change what was seen in them: so the answer still holds when it is used.
#include "bundle/host/trusted_path.hpp"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace sealift::bundle {

namespace {

constexpr int kMostLinks = 40;  // as the kernel's own limit

// Files of users whom this user namespace does not know seem to be this one's.
bool is_unknown_user(uid_t owner) {
  unsigned long first = 0, outside = 0, count = 0, unknown = 65534;
  if (std::FILE* const map = std::fopen("/proc/self/uid_map", "re")) {
    if (std::fscanf(map, "%lu %lu %lu", &first, &outside, &count) != 3) count = 0;
    std::fclose(map);
  }
  if (std::FILE* const number = std::fopen("/proc/sys/kernel/overflowuid", "re")) {
    if (std::fscanf(number, "%lu", &unknown) != 1) unknown = 65534;
    std::fclose(number);
  }
  const bool knows_all = first == 0 && outside == 0 && count >= 0xffffffff;  // not without /proc, which some roots lack
  return !knows_all && owner == unknown;
}

bool is_trusted(uid_t owner) {
  return owner == 0 || owner == ::geteuid() || is_unknown_user(owner);
}

// Many systems give each user a group of the same number and make folders group-writable. The group's bits are also
// those of an access list, which may name anybody.
bool is_own_group(const char* path, gid_t group) {
  if (group != 0 && (group != ::geteuid() || group != ::getegid())) return false;
  return ::lgetxattr(path, "system.posix_acl_access", nullptr, 0) <= 0;
}

bool is_sticky(const struct stat& folder) {
  return (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

// The way that is left, and the folders behind it, none of which is a link.
class Walk {
 public:
  Walk(Above above, PathFault& fault) : above_(above), fault_(fault) {}

  bool begin(const char* path) {
    if (*path == '/') return take(path, "");
    char here[PATH_MAX];
    if (::getcwd(here, sizeof here) == nullptr) return stop(".", errno);
    return take(here, path);
  }

  // False: the end is reached, or a fault is found.
  bool step() {
    char name[NAME_MAX + 1];
    if (!next(name)) return false;
    if (std::strcmp(name, ".") == 0) return true;
    if (std::strcmp(name, "..") == 0) {
      char* const slash = std::strrchr(real_, '/');
      if (slash != nullptr) *slash = '\0';
      return true;
    }
    char path[PATH_MAX];
    if (std::snprintf(path, sizeof path, "%s/%s", real_, name) >= static_cast<int>(sizeof path))
      return stop(real_, ENAMETOOLONG);
    struct stat status {};
    if (::lstat(path, &status) != 0) return errno == ENOENT || errno == ENOTDIR ? false : stop(path, errno);
    if (!is_good(path, status)) return false;
    if (S_ISLNK(status.st_mode)) return follow(path);
    std::strcpy(real_, path);
    return true;
  }

  bool look_at_root() {
    struct stat status {};
    if (::lstat("/", &status) != 0) return stop("/", errno);
    return is_good("/", status);
  }

  bool found() const { return found_; }

 private:
  bool take(const char* begin, const char* more) {
    char all[sizeof rest_];
    if (std::snprintf(all, sizeof all, "%s/%s", begin, more) >= static_cast<int>(sizeof all))
      return stop(begin, ENAMETOOLONG);
    std::strcpy(rest_, all);
    return true;
  }

  bool next(char* name) {
    const char* const begin = rest_ + std::strspn(rest_, "/");
    const std::size_t size = std::strcspn(begin, "/");
    if (size == 0) return false;
    if (size > NAME_MAX) return stop(real_, ENAMETOOLONG);
    std::memcpy(name, begin, size);
    name[size] = '\0';
    std::memmove(rest_, begin + size, std::strlen(begin + size) + 1);
    return true;
  }

  bool is_last() const { return rest_[std::strspn(rest_, "/")] == '\0'; }

  bool follow(const char* path) {
    if (++links_ > kMostLinks) return stop(path, ELOOP);
    struct statfs system {};
    // A process's own descriptors, as behind /dev/stdout: what they lead to was opened by the caller.
    if (::statfs(*real_ == '\0' ? "/" : real_, &system) == 0 && system.f_type == PROC_SUPER_MAGIC &&
        std::strstr(real_, "/fd") != nullptr)
      return false;
    char target[PATH_MAX], rest[sizeof rest_];
    const ssize_t size = ::readlink(path, target, sizeof target - 1);
    if (size < 0) return stop(path, errno);
    target[size] = '\0';
    std::strcpy(rest, rest_);
    if (*target == '/') *real_ = '\0';
    return take(target, rest);
  }

  bool lies_in_sticky() const {
    struct stat folder {};
    return ::lstat(*real_ == '\0' ? "/" : real_, &folder) != 0 || is_sticky(folder);
  }

  // A link's own mode says nothing; its owner and the folder that it lies in do.
  bool is_good(const char* path, const struct stat& status) {
    const bool lenient = above_ == Above::Site && ::geteuid() != 0, link = S_ISLNK(status.st_mode);
    const bool last = is_last() && !link, shared = lenient && !last && !(link && lies_in_sticky());
    if (!shared && !is_trusted(status.st_uid)) return fail(PathFault::Kind::Owner, path, status);
    if (link || (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode))) return true;
    mode_t others = status.st_mode & S_IWOTH;
    if ((status.st_mode & S_IWGRP) != 0 && !lenient && !is_own_group(path, status.st_gid)) others |= S_IWGRP;
    if (others == 0 || (!last && is_sticky(status))) return true;
    return fail(PathFault::Kind::Writable, path, status);
  }

  bool fail(PathFault::Kind kind, const char* path, const struct stat& status) {
    fault_ = {.kind = kind, .owner = status.st_uid, .mode = status.st_mode};
    std::snprintf(fault_.path, sizeof fault_.path, "%s", path);
    found_ = true;
    return false;
  }

  bool stop(const char* path, int error) {
    fail(PathFault::Kind::Unseen, path, {});
    fault_.error = error;
    return false;
  }

  Above above_;
  PathFault& fault_;
  char real_[PATH_MAX] = "", rest_[2 * PATH_MAX] = "";
  int links_ = 0;
  bool found_ = false;
};

}  // namespace

bool find_path_fault(const char* path, Above above, PathFault& fault) {
  Walk walk(above, fault);
  if (walk.begin(path) && walk.look_at_root()) {
    while (walk.step()) continue;
  }
  return walk.found();
}

}  // namespace sealift::bundle
