// SPDX-License-Identifier: Apache-2.0
// close_range marks them, or what the kernel lists where it is older; see kept_descriptors.hpp.
#include "bundle/host/kept_descriptors.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace sealift::bundle {
namespace {

constexpr unsigned kCloseOnExec = 4;  // CLOSE_RANGE_CLOEXEC, of Linux 5.11
constexpr long kCloseRange = 436;     // by number, since only glibc 2.34 knows its name

void close_on_exec(int descriptor) {
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

// Before Linux 5.11: the descriptors in /proc, or as many as there may be.
void close_listed_on_exec(unsigned first, unsigned last) {
  const int folder = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) {
    rlimit most{};
    ::getrlimit(RLIMIT_NOFILE, &most);
    const auto limit = static_cast<unsigned>(std::min<rlim_t>(most.rlim_cur, 65'536));
    for (unsigned one = first; one <= last && one < limit; ++one) close_on_exec(static_cast<int>(one));
    return;
  }
  alignas(8) char entries[2048];
  for (long size; (size = ::syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0;) {
    for (long at = 0; at < size;) {
      unsigned short length = 0;
      std::memcpy(&length, entries + at + 16, sizeof length);  // linux_dirent64: ino, off, reclen, type, name
      const char* name = entries + at + 19;
      unsigned number = 0;
      bool is_number = *name != '\0';
      for (; *name != '\0'; ++name) {
        is_number = is_number && *name >= '0' && *name <= '9';
        number = number * 10 + static_cast<unsigned>(*name - '0');
      }
      if (is_number && number >= first && number <= last) close_on_exec(static_cast<int>(number));
      at += length;
    }
  }
  ::close(folder);
}

void close_range_on_exec(unsigned first, unsigned last) {
  if (first <= last && ::syscall(kCloseRange, first, last, kCloseOnExec) != 0) close_listed_on_exec(first, last);
}

}  // namespace

void close_others_on_exec(const std::vector<int>& kept) {
  unsigned first = 3;
  for (const int one : kept) {
    if (one < static_cast<int>(first)) continue;
    close_range_on_exec(first, static_cast<unsigned>(one) - 1);
    ::fcntl(one, F_SETFD, 0);
    first = static_cast<unsigned>(one) + 1;
  }
  close_range_on_exec(first, ~0U);
}

}  // namespace sealift::bundle
