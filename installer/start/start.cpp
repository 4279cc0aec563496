// SPDX-License-Identifier: Apache-2.0
// sealift-start: stands in for a program of an environment (PREFIX/bin/NAME) and becomes the real one
// (PREFIX/libexec/NAME), same arguments, same environment. `current` is resolved once, here (stay), and Python is kept
// to its generation's modules (python_start). The dynamic linker is told two things, and what the program starts is
// told neither: the carried CUDA libraries come before the host's LD_LIBRARY_PATH, since they find each other by
// DT_RUNPATH and by dlopen, which that variable and ld.so.cache would override with a stray /usr/local/cuda or another
// cuDNN; the host's value stays behind them, since its driver may be found through it. And where /proc, by which the
// linker finds a program's $ORIGIN, is missing (bare hosts and chroots), where the program lies. Where the environment
// carries glibc (PREFIX/lib/runtime), its loader starts the program, and the host's is left alone. Static, so that it
// starts anywhere; no library of ours, so that it starts at once.
#include <alloca.h>
#include <dirent.h>
#include <limits.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "bundle/host/trusted_path.hpp"
#include "installer/start/carried_loader.hpp"
#include "installer/start/host_loader.hpp"
#include "installer/start/python_start.hpp"
#include "installer/start/stay.hpp"
#include "sealift/bundle/manifest/allowed_variables.hpp"
#include "sealift/bundle/manifest/variables.hpp"
#include "sealift/bundle/native/system_libraries.hpp"

namespace {

// The library path, searched after the programs' own DT_RPATH: glibc's folder, the environment's, CUDA's, then those of
// LD_LIBRARY_PATH, which the loader ignores when it is given this argument. The host's own folders and its ld.so.cache
// come last, for what a bundle must not carry: drivers, InfiniBand, name services.
constexpr char kLibraryPath[] = "$ORIGIN/../lib/runtime:$ORIGIN/../lib";
#if defined(__aarch64__)
constexpr std::string_view kLoader = sealift::bundle::loader_name("aarch64");
#else
constexpr std::string_view kLoader = sealift::bundle::loader_name("x86_64");
#endif

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

int is_python_folder(const dirent* entry) {
  return sealift::installer::is_python(entry->d_name) ? 1 : 0;
}

int is_visible(const dirent* entry) {
  return entry->d_name[0] != '.' ? 1 : 0;
}

// Calls `use` with FOLDER/NAME for each name that `filter` takes, in the order of the names.
template <class Use>
void for_each_name(const char* folder, int (*filter)(const dirent*), const Use& use) {
  dirent** names = nullptr;
  const int count = ::scandir(folder, &names, filter, ::alphasort);
  for (int i = 0; i < count; ++i) {
    char path[PATH_MAX];
    if (std::snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name) < PATH_MAX) use(path);
    std::free(names[i]);
  }
  std::free(names);
}

// Whether a library lies there that only runtime, interpreter or driver may bring: it would come before theirs.
bool holds_reserved(const char* folder) {
  bool found = false;
  for_each_name(folder, is_visible, [&](const char* path) {
    const std::string_view name = std::strrchr(path, '/') + 1;
    found = found || name == "glibc-hwcaps" || sealift::bundle::is_glibc_library(name) ||
            sealift::bundle::is_interpreter_library(name) || sealift::bundle::is_driver_library(name);
  });
  return found;
}

// PREFIX/lib/python3.N/site-packages/nvidia/*/lib of the environment whose libexec is `libexec`; often none. A folder
// with a library that is not its own to bring is passed over: wheels are refused for that, but an older installer did
// not.
const char* own_libraries(const char* libexec) {
  static char list[1 << 16];
  char lib[PATH_MAX], root[PATH_MAX];
  if (std::snprintf(lib, sizeof lib, "%s/../lib", libexec) >= PATH_MAX || ::realpath(lib, root) == nullptr) return list;
  if (std::strpbrk(root, ":;$") != nullptr) return list;  // a list of folders cannot hold this name
  std::size_t used = 0;
  for_each_name(root, is_python_folder, [&](const char* python) {
    char nvidia[PATH_MAX];
    if (std::snprintf(nvidia, sizeof nvidia, "%s/site-packages/nvidia", python) >= PATH_MAX) return;
    for_each_name(nvidia, is_visible, [&](const char* package) {
      char folder[PATH_MAX];
      if (std::snprintf(folder, sizeof folder, "%s/lib", package) >= PATH_MAX || ::access(folder, R_OK) != 0) return;
      if (holds_reserved(folder)) return;
      const int size = std::snprintf(list + used, sizeof list - used, "%s%s", used == 0 ? "" : ":", folder);
      if (static_cast<std::size_t>(size) < sizeof list - used)
        used += static_cast<std::size_t>(size);
      else
        list[used] = '\0';  // more than 64 KiB of folders: the rest is left out
    });
  });
  return list;
}

// The folder for what programs write and read again; null where there is none.
const char* named_cache() {
  static char folder[PATH_MAX];
  if (const char* given = std::getenv("XDG_CACHE_HOME"); given != nullptr && *given == '/') return given;
  const char* const home = std::getenv("HOME");
  if (home == nullptr || *home != '/') return nullptr;
  return std::snprintf(folder, sizeof folder, "%s/.cache", home) < PATH_MAX ? folder : nullptr;
}

// The same, where nobody but this user and root may write in it or above it. Compiled code is kept there: under
// `sudo -E` it would be another user's, and shared ones are anybody's.
const char* cache_folder() {
  static bool looked = false, own = false;
  const char* const folder = named_cache();
  sealift::bundle::PathFault ignored;
  if (folder != nullptr && !looked)
    own = !sealift::bundle::find_path_fault(folder, sealift::bundle::Above::Nobody, ignored);
  looked = true;
  return own ? folder : nullptr;
}

// The value with its two folders filled in; false when it needs one that is not there, or is too long.
bool expand(std::string_view value, const char* root, const char* cache, char* expanded, std::size_t size) {
  std::size_t used = 0;
  while (!value.empty()) {
    const bool is_prefix = value.starts_with(sealift::bundle::kPrefixWord);
    const bool is_cache = value.starts_with(sealift::bundle::kCacheWord);
    const char* const word = is_prefix ? root : cache;
    if (is_cache && cache == nullptr) return false;
    const std::string_view part = is_prefix || is_cache ? std::string_view(word) : value.substr(0, 1);
    if (used + part.size() >= size) return false;
    std::memcpy(expanded + used, part.data(), part.size());
    used += part.size();
    value.remove_prefix(is_prefix  ? sealift::bundle::kPrefixWord.size()
                        : is_cache ? sealift::bundle::kCacheWord.size()
                                   : 1);
  }
  expanded[used] = '\0';
  return true;
}

// Whether activation has set it: with `current`, which may lead to another generation in a moment.
bool is_of_activation(const char* set, std::string_view value) {
  static char expanded[1 << 14];
  char current[PATH_MAX];
  const char* const prefix = std::getenv("SEALIFT_PREFIX");
  return prefix != nullptr && std::snprintf(current, sizeof current, "%s/current", prefix) < PATH_MAX &&
         expand(value, current, named_cache(), expanded, sizeof expanded) && std::strcmp(set, expanded) == 0;
}

// Sets one variable of the environment, unless its user has; a value that needs a folder that is not there is left out.
void set_variable(const char* name, std::string_view value, const char* root) {
  static char expanded[1 << 14];
  const char* const set = std::getenv(name);
  if (set != nullptr && !is_of_activation(set, value)) return;
  if (expand(value, root, cache_folder(), expanded, sizeof expanded))
    ::setenv(name, expanded, 1);
  else if (set != nullptr)  // by activation, which does not look whose cache it is
    ::unsetenv(name);
}

// What the bundle says that programs of this environment get: lines NAME=VALUE, which the installer has checked. An
// older one let more names pass, and let wheels bring the file.
void set_variables(const char* root) {
  static char text[1 << 17];
  char file[PATH_MAX];
  if (std::snprintf(file, sizeof file, "%s/%s", root, sealift::bundle::kVariablesPlace.data()) >= PATH_MAX) return;
  std::FILE* const opened = std::fopen(file, "re");
  if (opened == nullptr) return;
  const std::size_t size = std::fread(text, 1, sizeof text - 1, opened);
  std::fclose(opened);
  text[size] = '\0';
  for (char* line = text; *line != '\0';) {
    char* const end = std::strchr(line, '\n');
    if (end == nullptr) return;
    *end = '\0';
    if (char* const equals = std::strchr(line, '='); equals != nullptr) {
      *equals = '\0';
      if (sealift::bundle::is_allowed_variable(line)) set_variable(line, equals + 1, root);
    }
    line = end + 1;
  }
}

// Appends to `path`, which has space for them.
void add_folders(char* path, const char* folders) {
  if (*folders == '\0') return;
  std::strcat(path, ":");
  std::strcat(path, folders);
}

// "NAME=FIRST:SECOND" in new memory, without the colon when there is no second; nullptr when there is no memory.
char* variable_of(const char* name, const char* first, const char* second) {
  const std::size_t size = std::strlen(name) + std::strlen(first) + std::strlen(second) + 3;
  char* const text = static_cast<char*>(std::malloc(size));
  if (text == nullptr) return nullptr;
  std::snprintf(text, size, "%s=%s", name, first);
  add_folders(text, second);
  return text;
}

// Without variables for the linker when the program cannot be started with them: it is no dynamic program of this kind
// of machine, and its libraries find each other by their own search paths.
void start_by_host(const char* folder, const char* own, const char* host, bool has_proc, const char* real,
                   const sealift::installer::Given& given) {
  sealift::installer::LinkerVariable variables[2];
  int count = 0;
  if (*own != '\0') variables[count++] = {.text = variable_of("LD_LIBRARY_PATH", own, host), .read_once = true};
  if (!has_proc) variables[count++] = {.text = variable_of("LD_ORIGIN_PATH", folder, ""), .read_once = false};
  for (int i = 0; i < count; ++i)
    if (variables[i].text == nullptr) return;  // errno says it
  if (count > 0) sealift::installer::start_with(variables, count, real, given);
  ::execv(real, given.values);
}

}  // namespace

int main(int argc, char** argv) {
  sealift::installer::Given given = sealift::installer::given_to_main(argc, argv);
  // From /proc, or without it from what the kernel was asked to run, or, when that is a script, from argv[0].
  const bool has_proc = ::access("/proc/self/exe", F_OK) == 0;
  const char* const called = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  char folder[PATH_MAX], real[PATH_MAX];
  if (!(has_proc && find_real("/proc/self/exe", folder, real)) && !find_real(called, folder, real) &&
      !find_real(argc > 0 ? argv[0] : nullptr, folder, real)) {
    std::fprintf(stderr, "%s: the program behind this one is not where it belongs (../libexec)\n", called);
    return 127;
  }
  const char* const name = std::strrchr(real, '/') + 1;
  sealift::installer::OwnPlace place{};
  if (sealift::installer::find_own_place(folder, place)) {
    sealift::installer::stay_in(place, name, argc, argv);
    set_variables(place.root);
    if (sealift::installer::is_python(name))
      given = sealift::installer::prepare_python(place.root, name, named_cache(), given);
  }
  const char* const own = own_libraries(folder);
  const char* const asked = std::getenv("LD_LIBRARY_PATH");
  const char* const host = asked == nullptr ? "" : asked;
  auto* const path = static_cast<char*>(alloca(sizeof kLibraryPath + 3 + std::strlen(own) + std::strlen(host)));
  char loader[PATH_MAX];
  const int size = std::snprintf(loader, PATH_MAX, "%s/../lib/runtime/%s", folder, kLoader.data());
  if (size < PATH_MAX && ::access(loader, R_OK) == 0) {
    std::strcpy(path, kLibraryPath);
    add_folders(path, own);
    add_folders(path, host);
    sealift::installer::start_through(loader, path, real, given);
  } else {
    start_by_host(folder, own, host, has_proc, real, given);
  }
  std::fprintf(stderr, "%s: cannot be started: %s\n", real, std::strerror(errno));
  return 127;
}
