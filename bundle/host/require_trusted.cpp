// SPDX-License-Identifier: Apache-2.0
// Sentences for faults; see require_trusted.hpp.
#include "bundle/host/require_trusted.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "sealift/bundle/core/file.hpp"

namespace sealift::bundle {

namespace {

std::string octal(mode_t mode) {
  char text[16];
  std::snprintf(text, sizeof text, "mode %04o", static_cast<unsigned>(mode & 07777));
  return text;
}

[[noreturn]] void refuse_path(const PathFault& fault, const std::string& what) {
  const std::string path = fault.path, owner = std::to_string(fault.owner), caller = std::to_string(::geteuid());
  if (fault.kind == PathFault::Kind::Unseen) throw_errno("a path cannot be examined", path, fault.error);
  const bool link = S_ISLNK(fault.mode), owned = fault.kind == PathFault::Kind::Owner;
  throw Error(
      ErrorCode::Usage,
      {.what = what,
       .where = path,
       .expected = owned ? (caller == "0" ? "root's own" : "of root or of user " + caller) +
                               std::string(", as each folder and link above it")
                         : "writable by its owner only; a folder above it also sticky, as /tmp is",
       .got = (owned ? (link ? "a symbolic link of user " : "user ") + owner : octal(fault.mode)),
       .next =
           owned ? "run this as that user (sudo -u '#" + owner + "' ...), name another place, or have its owner changed"
                 : "chmod go-w '" + path + "' once you know that nobody has used it, or name another place"});
}

}  // namespace

void require_trusted_path(const std::filesystem::path& path, Above above, const std::string& what) {
  PathFault fault;
  if (find_path_fault(path.c_str(), above, fault)) refuse_path(fault, what);
}

void require_trusted_open(int descriptor, const std::filesystem::path& where, const std::string& what) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) throw_errno("a path cannot be examined", where);
  PathFault fault{.kind = PathFault::Kind::Owner, .owner = status.st_uid, .mode = status.st_mode};
  std::snprintf(fault.path, sizeof fault.path, "%s", where.c_str());
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) refuse_path(fault, what);
  fault.kind = PathFault::Kind::Writable;
  if ((S_ISDIR(status.st_mode) || S_ISREG(status.st_mode)) && (status.st_mode & S_IWOTH) != 0) refuse_path(fault, what);
}

}  // namespace sealift::bundle
