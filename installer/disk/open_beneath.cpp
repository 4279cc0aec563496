// SPDX-License-Identifier: Apache-2.0
// The numbers are the kernel's own and are spelled here, since the headers of an older system lack them.
#include "installer/disk/open_beneath.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string_view>

namespace sealift::installer {

namespace {

struct OpenHow {  // open_how in linux/openat2.h
  std::uint64_t flags;
  std::uint64_t mode;
  std::uint64_t resolve;
};
constexpr long kOpenat2 = 437;  // on every architecture
constexpr std::uint64_t kNoMagicLinks = 0x02, kNoSymlinks = 0x04, kBeneath = 0x08;

std::atomic<bool> kernel_has_openat2{true};

// -1 with ENOSYS where this kernel, or a container's filter of system calls, does not have it.
int openat2(int folder, const std::string& path, int flags) {
  const OpenHow how{
      .flags = static_cast<std::uint64_t>(flags), .mode = 0, .resolve = kBeneath | kNoSymlinks | kNoMagicLinks};
  for (int tries = 0;; ++tries) {
    const auto opened = static_cast<int>(::syscall(kOpenat2, folder, path.c_str(), &how, sizeof how));
    if (opened >= 0 || (errno != EINTR && (errno != EAGAIN || tries == 100))) return opened;
  }
}

bundle::Descriptor open_name_by_name(int folder, std::string_view path, int flags) {
  bundle::Descriptor open;
  for (;;) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string name(path.substr(0, slash));
    const bool last = slash == path.size();
    if (name.empty() || name == "." || name == "..") return errno = EXDEV, bundle::Descriptor();
    const int with = last ? flags | O_NOFOLLOW : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    bundle::Descriptor next(::openat(open ? open.get() : folder, name.c_str(), with));
    if (!next || last) return next;
    open = std::move(next);
    path.remove_prefix(slash + 1);
  }
}

}  // namespace

bundle::Descriptor open_beneath(int folder, const std::string& path, int flags, Resolve how) {
  if (how == Resolve::AsTheKernelCan && kernel_has_openat2) {
    bundle::Descriptor open(openat2(folder, path, flags));
    if (open || (errno != ENOSYS && errno != EPERM)) return open;
    kernel_has_openat2 = false;
  }
  return open_name_by_name(folder, path, flags);
}

}  // namespace sealift::installer
