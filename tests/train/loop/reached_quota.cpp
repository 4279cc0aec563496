// SPDX-License-Identifier: Apache-2.0
// Preloaded into a program: while the file $QUOTA_REACHED is there, nothing more is written in the folder
// $QUOTA_FOLDER. For failures_test.py, since a quota needs a file system that was made with one. Only write(2), by
// which checkpoints are written; what a quota says of it is EDQUOT.
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

bool is_in_folder(int file) {
  const char* folder = std::getenv("QUOTA_FOLDER");
  char path[4096];
  const auto size = readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path, sizeof path);
  return folder && size > 0 && std::string_view(path, static_cast<std::size_t>(size)).starts_with(folder);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) ssize_t write(int file, const void* bytes, std::size_t count) {
  static const auto real = reinterpret_cast<ssize_t (*)(int, const void*, std::size_t)>(dlsym(RTLD_NEXT, "write"));
  const char* reached = std::getenv("QUOTA_REACHED");
  if (reached && access(reached, F_OK) == 0 && is_in_folder(file)) {
    errno = EDQUOT;
    return -1;
  }
  return real(file, bytes, count);
}
