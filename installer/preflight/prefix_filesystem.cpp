// SPDX-License-Identifier: Apache-2.0
// Case folding is detected from an existing name: it folds if the name in the other case is the same file. The file
// system's type would not tell: ext4 folds case in single folders, and a network share as its server decides.
#include "installer/preflight/prefix_filesystem.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>

namespace sealift::installer {

namespace fs = std::filesystem;

namespace {

constexpr int kMaxNames = 1000;  // tried in one folder

std::string other_case(std::string name) {
  for (char& c : name)
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) c = static_cast<char>(c ^ 0x20);
  return name;
}

// Nothing when the name has no letters or does not exist.
std::optional<bool> found_in_other_case(const fs::path& path) {
  const std::string name = path.filename().string(), other = other_case(name);
  struct stat first {
  }, second{};
  if (name == other || ::lstat(path.c_str(), &first) != 0) return std::nullopt;
  if (::lstat((path.parent_path() / other).c_str(), &second) != 0) return false;
  return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

bool folds_case(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator names(folder, error);
  for (int i = 0; !error && names != fs::directory_iterator() && i < kMaxNames; names.increment(error), ++i)
    if (const std::optional<bool> folds = found_in_other_case(names->path())) return *folds;
  return found_in_other_case(folder).value_or(false);
}

// Device and mount: a bind mount has the device of where it comes from, and no name moves into it either. Kernels
// before 5.8 tell the device alone.
std::optional<std::array<std::uint64_t, 3>> mount_of(const fs::path& folder) {
  struct statx status {};
  if (::statx(AT_FDCWD, folder.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_MNT_ID, &status) != 0 ||
      !S_ISDIR(status.stx_mode))
    return std::nullopt;
  return std::array<std::uint64_t, 3>{status.stx_dev_major, status.stx_dev_minor,
                                      (status.stx_mask & STATX_MNT_ID) != 0 ? status.stx_mnt_id : 0};
}

std::vector<fs::path> mounted_inside(const Prefix& prefix) {
  std::error_code error;
  const auto own = mount_of(fs::canonical(prefix.folder(), error));  // the prefix itself may lie behind a link
  std::vector<fs::path> elsewhere;
  for (const fs::path& folder : prefix.folders())
    if (const auto its = mount_of(folder); own && its && *its != *own) elsewhere.push_back(folder);
  return elsewhere;
}

// glibc asks by faccessat2, to which older container runtimes answer EPERM, as to each call that they do not know. Then
// the older call, which asks for the real user: that is this one.
bool is_writable(const fs::path& folder) {
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return true;
  return errno == EPERM && ::access(folder.c_str(), W_OK | X_OK) == 0;
}

}  // namespace

PrefixFilesystem probe_prefix_filesystem(const Prefix& prefix, const Disk& disk) {
  PrefixFilesystem filesystem{.path = prefix.folder(), .mount = disk.mount(prefix.folder())};
  fs::path folder = prefix.folder();
  std::error_code ignored;
  while (!fs::exists(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  if (!fs::is_directory(folder, ignored)) return filesystem;  // the Conflict is thrown when the folder is made
  filesystem.writable = is_writable(folder);
  filesystem.folds_case = folds_case(folder);
  filesystem.mounted_inside = mounted_inside(prefix);
  return filesystem;
}

}  // namespace sealift::installer
