// SPDX-License-Identifier: Apache-2.0
// Source: CPython, Modules/getpath.py: the executable is argv[0], or what PATH has of its name; pyvenv.cfg beside it or
// one folder above makes it a virtual environment's; sys.prefix is searched for upwards from it.
#include "installer/start/stay.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace sealift::installer {

namespace {

bool leads_to(const char* folder, const char* bin) {
  char real[PATH_MAX];
  return *folder == '/' && ::realpath(folder, real) != nullptr && std::strcmp(real, bin) == 0;
}

// Calls `use` with each folder of PATH and its size until it returns true.
template <class Use>
bool for_each_folder(const char* path, const Use& use) {
  for (const char* begin = path;; ++begin) {
    const char* const end = ::strchrnul(begin, ':');
    if (use(begin, static_cast<int>(end - begin))) return true;
    if (*end == '\0') return false;
    begin = end;
  }
}

void stay_in_path(const char* bin) {
  const char* const path = std::getenv("PATH");
  if (path == nullptr) return;
  std::size_t folders = 1;
  for (const char* c = path; *c != '\0'; ++c) folders += *c == ':' ? 1 : 0;
  auto* const pinned = static_cast<char*>(std::malloc(std::strlen(path) + folders * std::strlen(bin) + 1));
  if (pinned == nullptr) return;
  char* to = pinned;
  for_each_folder(path, [&](const char* folder, int size) {
    char one[PATH_MAX];
    const bool ours = std::snprintf(one, sizeof one, "%.*s", size, folder) < PATH_MAX && leads_to(one, bin);
    to += std::sprintf(to, "%s%.*s", to == pinned ? "" : ":", ours ? static_cast<int>(std::strlen(bin)) : size,
                       ours ? bin : folder);
    return false;
  });
  if (std::strcmp(pinned, path) != 0) ::setenv("PATH", pinned, 1);
  std::free(pinned);
}

// Where a program lies that was called so; false when PATH has none of this name.
bool find_called(const char* called, char* place) {
  if (std::strchr(called, '/') != nullptr) return std::snprintf(place, PATH_MAX, "%s", called) < PATH_MAX;
  const char* const path = std::getenv("PATH");
  return path != nullptr && for_each_folder(path, [&](const char* folder, int size) {
           return std::snprintf(place, PATH_MAX, "%.*s/%s", size, folder, called) < PATH_MAX &&
                  ::access(place, X_OK) == 0;
         });
}

bool in_virtual_environment(const char* place) {
  const char* const slash = std::strrchr(place, '/');
  for (const char* above : {"", "../"}) {
    char file[PATH_MAX];
    const int size = static_cast<int>(slash - place);
    if (std::snprintf(file, sizeof file, "%.*s/%spyvenv.cfg", size, place, above) < PATH_MAX &&
        ::access(file, F_OK) == 0)
      return true;
  }
  return false;
}

// BIN/BASE where there is such a program, else BIN/NAME.
char* own_name(const char* bin, const char* base, const char* name) {
  static char own[PATH_MAX + 8 + NAME_MAX + 2];
  std::snprintf(own, sizeof own, "%s/%.*s", bin, NAME_MAX, base);
  if (::access(own, X_OK) != 0) std::snprintf(own, sizeof own, "%s/%.*s", bin, NAME_MAX, name);
  return own;
}

bool lies_in(const char* place, const char* bin) {
  char folder[PATH_MAX], real[PATH_MAX];
  const auto size = static_cast<int>(std::strrchr(place, '/') - place);
  return std::snprintf(folder, sizeof folder, "%.*s", size + 1, place) < PATH_MAX &&
         ::realpath(folder, real) != nullptr && std::strcmp(real, bin) == 0;
}

}  // namespace

bool find_own_place(const char* libexec, OwnPlace& place) {
  char above[PATH_MAX];
  if (std::snprintf(above, sizeof above, "%s/..", libexec) >= PATH_MAX || ::realpath(above, place.root) == nullptr)
    return false;
  std::snprintf(place.bin, sizeof place.bin, "%s/bin", place.root);
  return true;
}

bool is_python(const char* name) {
  return std::strncmp(name, "python3", 7) == 0;
}

void stay_in(const OwnPlace& place, const char* name, int argc, char** argv) {
  stay_in_path(place.bin);
  if (argc == 0) return;
  const char* const slash = std::strrchr(argv[0], '/');
  const char* const base = slash == nullptr ? argv[0] : slash + 1;
  char called[PATH_MAX];
  if (is_python(name)) {
    if (!find_called(argv[0], called) || !in_virtual_environment(called)) argv[0] = own_name(place.bin, base, name);
  } else if (slash != nullptr && lies_in(argv[0], place.bin)) {
    argv[0] = own_name(place.bin, base, name);
  }
}

}  // namespace sealift::installer
