// SPDX-License-Identifier: Apache-2.0
// Looked at under the prefix's anchor and before anything is written: from then on only the owner, or root, can put
// something else in the place of what was looked at.
#include "installer/prefix/prefix_owner.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fstream>

#include "sealift/bundle/core/error.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

std::string octal(mode_t mode) {
  char text[16];
  std::snprintf(text, sizeof text, "mode %04o", static_cast<unsigned>(mode & 07777));
  return text;
}

[[noreturn]] void refuse_owner(const fs::path& path, uid_t owner) {
  const std::string user = std::to_string(owner);
  throw Error(ErrorCode::Usage,
              {.what = "this belongs to another user, who could change what is installed and run here",
               .where = path.string(),
               .expected = "user " + std::to_string(::geteuid()),
               .got = "user " + user,
               .next = "run this as that user (sudo -u '#" + user + "' ...), or choose another --prefix"});
}

[[noreturn]] void refuse_mode(const fs::path& path, mode_t mode) {
  throw Error(ErrorCode::Usage,
              {.what = "others may change what is installed and run here",
               .where = path.string(),
               .expected = "writable by its owner only",
               .got = octal(mode),
               .next = "chmod go-w '" + path.string() +
                       "'; then compare the prefix with a bundle: sealift-install doctor --repair BUNDLE"});
}

void check_path(const fs::path& path, mode_t type) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return;  // not there; whoever needs it says so
  if ((status.st_mode & S_IFMT) != type)
    throw Error(ErrorCode::Conflict,
                {.what = "something else stands where this program keeps its own",
                 .where = path.string(),
                 .expected = type == S_IFDIR ? "a folder, or nothing" : "a file, or nothing",
                 .got = S_ISLNK(status.st_mode) ? "a symbolic link, which was not followed" : octal(status.st_mode),
                 .next = "find out who made it, move it away, and run this again"});
  if (status.st_uid != ::geteuid()) refuse_owner(path, status.st_uid);
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) refuse_mode(path, status.st_mode);
}

// Files of users whom this user namespace does not know seem to be this one's; a container sees its host's so.
constexpr const char* kUnknownUser = "/proc/sys/kernel/overflowuid";

bool is_unknown_user(uid_t owner) {
  std::uint64_t first = 0, outside = 0, count = 0, unknown = 65534;
  std::ifstream("/proc/self/uid_map") >> first >> outside >> count;
  std::ifstream(kUnknownUser) >> unknown;
  const bool knows_all = first == 0 && outside == 0 && count >= 0xffffffff;  // not without /proc, which some roots lack
  return !knows_all && owner == unknown;
}

// A folder above the prefix: who may rename what is in it can put another prefix in this one's place. That is nobody's
// to decide where root installs for all; a user's prefix may lie below a group's or a project's folder of the site.
void check_parent(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return;
  const bool for_all = ::geteuid() == 0;
  if (for_all && status.st_uid != 0 && !is_unknown_user(status.st_uid))
    throw Error(ErrorCode::Usage,
                {.what = "another user may put something else in the place of this prefix",
                 .where = folder.string(),
                 .expected = "each folder above it of root",
                 .got = "user " + std::to_string(status.st_uid),
                 .next = "choose another --prefix, install as that user, or have the folder's owner changed"});
  const mode_t others = for_all && status.st_gid != 0 ? S_IWGRP | S_IWOTH : S_IWOTH;
  if ((status.st_mode & others) != 0 && (status.st_mode & S_ISVTX) == 0)
    throw Error(ErrorCode::Usage, {.what = "others may put something else in the place of this prefix",
                                   .where = folder.string(),
                                   .expected = "a folder that only its owner writes, or a sticky one as /tmp is",
                                   .got = octal(status.st_mode),
                                   .next = "chmod go-w '" + folder.string() + "', or choose another --prefix"});
}

// Of the prefix as it was named and of the one behind links: the site chose both.
void check_parents(const fs::path& prefix) {
  std::error_code error;
  const fs::path real = fs::canonical(prefix, error);
  for (fs::path path : {prefix, error ? prefix : real})
    while (path.has_relative_path()) check_parent(path = path.parent_path());
}

}  // namespace

void require_own_prefix(const Prefix& prefix) {
  struct stat status {};
  if (::stat(prefix.folder().c_str(), &status) == 0) {  // it may lie behind a link: the site's choice
    if (status.st_uid != ::geteuid() && status.st_uid != 0) refuse_owner(prefix.folder(), status.st_uid);
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) refuse_mode(prefix.folder(), status.st_mode);
  }
  check_parents(prefix.folder());
  for (const fs::path& folder :
       {prefix.trust(), prefix.store(), prefix.generations(), prefix.staging(), prefix.staged_items(), prefix.failed(),
        prefix.receipts(), prefix.pins(), prefix.venvs(), prefix.site(), prefix.modulefiles(), prefix.kernels()})
    check_path(folder, S_IFDIR);
  for (const fs::path& file : {prefix.lock(), prefix.stamps(), prefix.trust() / "state.a", prefix.trust() / "state.b"})
    check_path(file, S_IFREG);
}

bool is_prefix(const Prefix& prefix) {
  std::error_code ignored;
  for (const fs::path& folder : {prefix.generations(), prefix.trust(), prefix.store(), prefix.staging()})
    if (fs::is_directory(folder, ignored)) return true;
  return false;
}

void require_prefix(const Prefix& prefix) {
  if (is_prefix(prefix)) return;
  fs::path around = prefix.folder();
  while (around.has_relative_path() && !is_prefix(Prefix(around))) around = around.parent_path();
  std::error_code ignored;
  throw Error(ErrorCode::Missing,
              {.what = fs::exists(prefix.folder(), ignored) ? "this folder is no prefix" : "there is no prefix here",
               .where = prefix.folder().string(),
               .expected = "a folder that sealift-install apply was given; generations/ and trust/ are in it",
               .next = around.has_relative_path()
                           ? "the prefix is the folder above: --prefix '" + around.string() + "'"
                           : "name the folder that was given to apply, or install there first: sealift-install apply "
                             "BUNDLE --prefix '" +
                                 prefix.folder().string() + "'"});
}

bool is_own_prefix(const Prefix& prefix) {
  for (const fs::path& folder : {prefix.folder(), prefix.store(), prefix.generations()}) {
    struct stat status {};
    if (::stat(folder.c_str(), &status) != 0) continue;
    if (status.st_uid != ::geteuid() && status.st_uid != 0) return false;
  }
  return true;
}

}  // namespace sealift::installer
