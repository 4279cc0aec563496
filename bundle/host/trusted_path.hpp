// SPDX-License-Identifier: Apache-2.0
// May I trust this path? Each program asks here before it runs, believes, follows or writes what a path leads to, so
// that the answer is the same for every verb. It needs nothing but libc, so that sealift-start, which is static and
// small, is built with it.
#pragma once

#include <limits.h>
#include <sys/types.h>

namespace sealift::bundle {

// Whom the folders above may belong to, besides root and the caller.
enum class Above {
  Nobody,  // what is run, or decides what is run: ssh judges the folders above a key file so
  Site,    // of a caller who is not root: any account of the site, and any group, as shared folders do
};

// Why a path is not trusted.
struct PathFault {
  enum class Kind {
    Owner,     // belongs to another user
    Writable,  // others may write it
    Unseen,    // cannot be looked at: `error` says why
  };

  Kind kind = Kind::Owner;
  char path[PATH_MAX] = "";  // the folder, link or file that it is about, behind the links that lead there
  uid_t owner = 0;
  mode_t mode = 0;
  int error = 0;
};

// Whether somebody other than root and the caller could change what `path` leads to, or put something else in its
// place; the first fault that is found on the way from "/", through every link and every folder that one leads through.
// The path itself, where it is there, has to be root's or the caller's, and nobody else's to write; folders above it
// may also be sticky, as /tmp is, for what root and the caller own there. What is not there has no fault of its own. A
// group that has its user's number, or root's, counts as its user alone; with Site each group does, unless root asks.
// Who this user namespace does not know counts as root: a container sees its host's folders so.
bool find_path_fault(const char* path, Above above, PathFault& fault);

}  // namespace sealift::bundle
