// SPDX-License-Identifier: Apache-2.0
// Opening the device says more than its mode does: in a container the node may be there and refused.
#include "installer/host/fuse_needs.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sealift/bundle/core/file.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

namespace {

constexpr const char* kUnpack = "; without it unpack: sealift-install apply";

}  // namespace

FuseNeeds fuse_needs_here() {
  FuseNeeds needs;
  needs.root = ::geteuid() == 0;
  std::error_code ignored;
  for (const char* place : {"/usr/bin/fusermount3", "/bin/fusermount3", "/usr/local/bin/fusermount3"})
    if (fs::exists(place, ignored)) {
      needs.helper = place;
      break;
    }
  return needs;
}

void require_fuse(const FuseNeeds& needs) {
  if (const bundle::Descriptor device(::open(needs.device.c_str(), O_RDWR | O_CLOEXEC)); !device) {
    const int error = errno;
    throw Error(
        ErrorCode::Platform,
        {.what = "FUSE is not to be had here",
         .where = needs.device.string(),
         .expected = "a device that the caller may open",
         .got = std::strerror(error),
         .next = std::string(error == EACCES || error == EPERM
                                 ? "root lets users open it (chmod 0666); a container is started with it"
                                 : "root loads the kernel's module (modprobe fuse); a container gets the device "
                                   "(--device /dev/fuse)") +
                 kUnpack});
  }
  if (needs.root) return;
  struct stat helper {};
  if (::stat(needs.helper.c_str(), &helper) == 0 && (helper.st_mode & S_ISUID) != 0 && helper.st_uid == 0) return;
  throw Error(ErrorCode::Platform, {.what = "who is not root cannot mount here",
                                    .where = needs.helper.string(),
                                    .expected = "fusermount3, owned by root and with the set-user-ID bit",
                                    .got = errno == ENOENT ? "no such program" : "one without them",
                                    .next = std::string("root installs the distribution's package fuse3") + kUnpack});
}

std::string fuse_missing(const FuseNeeds& needs) {
  try {
    require_fuse(needs);
    return {};
  } catch (const Error& error) {
    const bundle::Facts& facts = error.facts();
    return facts.where + ": " + facts.got + "; " + facts.next;
  }
}

}  // namespace sealift::installer
