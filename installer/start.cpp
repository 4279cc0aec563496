// SPDX-License-Identifier: Apache-2.0
// sealift-start: stands in for a program of an environment (PREFIX/bin/NAME) and becomes the real one
// (PREFIX/libexec/NAME), same arguments, same environment. Needed because the dynamic linker finds a program's $ORIGIN
// through /proc, which bare hosts and chroots do not always have; there it is told by LD_ORIGIN_PATH. Where the
// environment carries glibc (PREFIX/lib/runtime), it is what starts the program, and the host's is left alone.
// Static, so that it starts anywhere; no library of ours, so that it starts at once.
#include <alloca.h>
#include <limits.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "installer/carried_loader.hpp"

namespace {

// Where libraries are looked for, behind what programs say themselves (DT_RPATH): glibc's, the environment's, those of
// LD_LIBRARY_PATH, which the loader does not ask itself when it is given this. The host's own folders and its
// ld.so.cache come last of all, so that what the bundle must not have is found: drivers, InfiniBand, name services.
constexpr char kLibraryPath[] = "$ORIGIN/../lib/runtime:$ORIGIN/../lib";

// Where this very file is, links resolved; false when `name` does not lead to a file with a program behind it.
bool find_real(const char* name, char* folder, char* real) {
  char self[PATH_MAX];
  if (name == nullptr || std::strchr(name, '/') == nullptr || ::realpath(name, self) == nullptr) return false;
  char* const slash = std::strrchr(self, '/');
  *slash = '\0';
  const int folder_size = std::snprintf(folder, PATH_MAX, "%s/../libexec", self);
  const int real_size = std::snprintf(real, PATH_MAX, "%s/%s", folder, slash + 1);
  return folder_size < PATH_MAX && real_size < PATH_MAX && ::access(real, X_OK) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  // /proc knows best. Without it: what the kernel was asked to run, or, when that is a script, its interpreter's name.
  const bool has_proc = ::access("/proc/self/exe", F_OK) == 0;
  const char* const called = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  char folder[PATH_MAX], real[PATH_MAX];
  if (!(has_proc && find_real("/proc/self/exe", folder, real)) && !find_real(called, folder, real) &&
      !find_real(argc > 0 ? argv[0] : nullptr, folder, real)) {
    std::fprintf(stderr, "%s: the program behind this one is not where it belongs (../libexec)\n", called);
    return 127;
  }
  char loader[PATH_MAX];
  const int size = std::snprintf(loader, PATH_MAX, "%s/../lib/runtime/ld-linux-x86-64.so.2", folder);
  if (size < PATH_MAX && ::access(loader, R_OK) == 0) {
    const char* const asked = std::getenv("LD_LIBRARY_PATH");
    const char* const more = asked == nullptr ? "" : asked;
    auto* const path = static_cast<char*>(alloca(sizeof kLibraryPath + 1 + std::strlen(more)));
    std::sprintf(path, *more == '\0' ? "%s" : "%s:%s", kLibraryPath, more);
    sealift::installer::start_through(loader, path, real, argc, argv);
  } else {
    if (!has_proc) ::setenv("LD_ORIGIN_PATH", folder, 1);
    ::execv(real, argv);
  }
  std::fprintf(stderr, "%s: cannot be started: %s\n", real, std::strerror(errno));
  return 127;
}
