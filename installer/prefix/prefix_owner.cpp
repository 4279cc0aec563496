// SPDX-License-Identifier: Apache-2.0
// Looked at under the prefix's anchor and before anything is written: from then on only the owner, or root, can put
// something else in the place of what was looked at.
#include "installer/prefix/prefix_owner.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "bundle/host/require_trusted.hpp"
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
  if (::lstat(path.c_str(), &status) != 0) return;  // not there; its user says so
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

}  // namespace

void require_own_prefix(const Prefix& prefix) {
  struct stat status {};
  if (::stat(prefix.folder().c_str(), &status) == 0) {  // it may lie behind a link: the site's choice
    if (status.st_uid != ::geteuid() && status.st_uid != 0) refuse_owner(prefix.folder(), status.st_uid);
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) refuse_mode(prefix.folder(), status.st_mode);
  }
  bundle::require_trusted_path(prefix.folder(), bundle::Above::Site,
                               "another user may put something else in the place of this prefix");
  for (const fs::path& folder : prefix.folders()) check_path(folder, S_IFDIR);
  check_path(prefix.staged_items(), S_IFDIR);
  for (const fs::path& file : {prefix.lock(), prefix.stamps(), prefix.trust() / "state.a", prefix.trust() / "state.b"})
    check_path(file, S_IFREG);
}

bool is_own_prefix(const Prefix& prefix) {
  bundle::PathFault ignored;
  for (const fs::path& folder : {prefix.folder(), prefix.store(), prefix.generations()})
    if (bundle::find_path_fault(folder.c_str(), bundle::Above::Site, ignored)) return false;
  return true;
}

}  // namespace sealift::installer
