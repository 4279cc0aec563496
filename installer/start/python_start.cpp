// SPDX-License-Identifier: Apache-2.0
// PYTHONPATH counts where it was set on purpose: after activation, which takes the older one away, by a program of this
// very environment for one that it starts, or under the name SEALIFT_PYTHONPATH. Otherwise it is another Python's.
// Sources: CPython, Python/initconfig.c (command line, pycache_prefix); PEP 552.
#include "installer/start/python_start.hpp"

#include <limits.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bundle/host/trusted_path.hpp"
#include "installer/start/host_authorities.hpp"

namespace sealift::installer {

namespace {

constexpr const char* kGeneration = "SEALIFT_GENERATION";  // for what this Python starts: whose variables these are

// Whether a program of this environment, or a shell that uses its prefix, has set the variables that are there.
bool is_inside(const char* root) {
  const char* const generation = std::getenv(kGeneration);
  if (generation != nullptr && std::strcmp(generation, root) == 0) return true;
  const char* const prefix = std::getenv("SEALIFT_PREFIX");
  char real[PATH_MAX];
  if (prefix == nullptr || ::realpath(prefix, real) == nullptr) return false;
  const std::size_t size = std::strlen(real);
  return std::strncmp(root, real, size) == 0 && root[size] == '/';
}

// What tells Python where another interpreter is: its standard library, its program, what it was built for.
constexpr const char* kOfAnother[] = {"PYTHONHOME",          "PYTHONPLATLIBDIR",           "PYTHONEXECUTABLE",
                                      "__PYVENV_LAUNCHER__", "_PYTHON_SYSCONFIGDATA_NAME", "_PYTHON_HOST_PLATFORM",
                                      "_PYTHON_PROJECT_BASE"};

void set_search_path(const char* root) {
  for (const char* name : kOfAnother) ::unsetenv(name);
  if (std::getenv("PYTHONNOUSERSITE") == nullptr) ::setenv("PYTHONNOUSERSITE", "1", 1);
  const bool inside = is_inside(root);
  ::setenv(kGeneration, root, 1);
  if (inside) return;
  const char* const asked = std::getenv("SEALIFT_PYTHONPATH");
  const char* const foreign = std::getenv("PYTHONPATH");
  if (asked != nullptr) {
    ::setenv("PYTHONPATH", asked, 1);
  } else if (foreign != nullptr && *foreign != '\0') {
    std::fprintf(stderr,
                 "%s: PYTHONPATH is left out, since nothing was activated; for modules of your own, activate first, or "
                 "set SEALIFT_PYTHONPATH (empty: none, and not a word)\n",
                 root);
    ::unsetenv("PYTHONPATH");
  }
}

// The carried OpenSSL looks where its own distribution has the authorities, and this host may be of another one. What
// the user has set, and a host of Debian's kind, where it finds them itself, are left alone.
void set_authorities() {
  if (std::getenv("SSL_CERT_FILE") != nullptr || std::getenv("SSL_CERT_DIR") != nullptr) return;
  for (const std::string_view file : kAuthorities) {
    if (::access(file.data(), R_OK) != 0) continue;
    if (file != kAuthorities[0]) ::setenv("SSL_CERT_FILE", file.data(), 1);
    return;
  }
}

// The generation record, as far as it fits; empty where there is none. In JSON text these names cannot be part of a
// value, where quotation marks are escaped.
const char* record_of(const char* root) {
  static char text[1 << 20];
  char file[PATH_MAX];
  if (std::snprintf(file, sizeof file, "%s/generation.json", root) >= PATH_MAX) return text;
  std::FILE* const opened = std::fopen(file, "re");
  if (opened == nullptr) return text;
  text[std::fread(text, 1, sizeof text - 1, opened)] = '\0';
  std::fclose(opened);
  return text;
}

// Whether apply compiled the modules. Python would not read them if it were sent to a cache.
bool is_compiled(const char* root, const char* name, const char* record) {
  if (*record != '\0') return std::strstr(record, "\"bytecode\":true") != nullptr;
  char folder[PATH_MAX];
  return std::snprintf(folder, sizeof folder, "%s/lib/%s/__pycache__", root, name) < PATH_MAX &&
         ::access(folder, F_OK) == 0;
}

// Each bundle has its own folder: hosts that share a home may have different ones at the same path, and Python
// compares only times and sizes.
void write_folder(const char* cache, const char* record, char* folder, std::size_t size) {
  constexpr std::string_view kIdentity = "\"identity\":\"";
  const char* const identity = std::strstr(record, kIdentity.data());
  std::snprintf(folder, size, "%s%s%s%.16s", cache, kBytecodeFolder.data(), identity == nullptr ? "" : "/",
                identity == nullptr ? "" : identity + kIdentity.size());
}

// A value that activation or another Python of ours has set is no choice of the user's.
bool is_ours(const char* value, const char* cache) {
  if (cache == nullptr || std::strncmp(value, cache, std::strlen(cache)) != 0) return false;
  return std::strncmp(value + std::strlen(cache), kBytecodeFolder.data(), kBytecodeFolder.size()) == 0;
}

// -I or -E among Python's own options, which end at the script, -c or -m.
bool ignores_variables(const Given& given) {
  for (int i = 1; i < given.count && given.values[i][0] == '-' && given.values[i][1] != '\0'; ++i) {
    const char* const option = given.values[i];
    if (std::strcmp(option, "--") == 0) return false;
    if (std::strcmp(option, "--check-hash-based-pycs") == 0) ++i;
    if (option[1] == '-') continue;
    for (const char* letter = option + 1; *letter != '\0'; ++letter) {
      if (*letter == 'I' || *letter == 'E') return true;
      if (*letter == 'c' || *letter == 'm') return false;
      if (*letter != 'W' && *letter != 'X') continue;
      if (letter[1] == '\0') ++i;  // the next argument is its value
      break;
    }
  }
  return false;
}

// Whether anybody but this user and root could lay down the bytecode that is read there.
bool others_may_write(const char* folder) {
  bundle::PathFault ignored;
  return bundle::find_path_fault(folder, bundle::Above::Nobody, ignored);
}

Given with_option(const Given& given, const char* option, const char* value) {
  auto** const values = static_cast<char**>(std::calloc(static_cast<std::size_t>(given.count) + 3, sizeof(char*)));
  if (values == nullptr) return given;
  int count = 0;
  values[count++] = given.values[0];
  values[count++] = ::strdup(option);
  if (value != nullptr) values[count++] = ::strdup(value);
  for (int i = 1; i < given.count; ++i) values[count++] = given.values[i];
  return {.count = count, .values = values, .auxiliary = given.auxiliary};
}

Given set_bytecode(const char* root, const char* name, const char* cache, const Given& given) {
  constexpr const char* kVariable = "PYTHONPYCACHEPREFIX";
  const char* const record = record_of(root);
  const char* const set = std::getenv(kVariable);
  if (set != nullptr && is_ours(set, cache))
    ::unsetenv(kVariable);
  else if (set != nullptr && *set != '\0' && others_may_write(set)) {
    std::fprintf(stderr, "%s: PYTHONPYCACHEPREFIX is left out: others may write %s, and this would run it\n", root,
                 set);
    ::unsetenv(kVariable);
  }
  if (is_compiled(root, name, record) || std::getenv(kVariable) != nullptr) return given;
  const bool ignored = given.count > 0 && ignores_variables(given);
  static char option[PATH_MAX + 64] = "pycache_prefix=";
  char* const folder = option + std::strlen(option);
  if (cache != nullptr) write_folder(cache, record, folder, PATH_MAX);
  if (cache == nullptr || others_may_write(folder)) {  // a user without a home of theirs
    if (std::getenv("PYTHONDONTWRITEBYTECODE") == nullptr) ::setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    return ignored ? with_option(given, "-B", nullptr) : given;
  }
  ::setenv(kVariable, folder, 1);
  return ignored ? with_option(given, "-X", option) : given;
}

}  // namespace

Given prepare_python(const char* root, const char* name, const char* cache, const Given& given) {
  set_search_path(root);
  set_authorities();
  return set_bytecode(root, name, cache, given);
}

}  // namespace sealift::installer
