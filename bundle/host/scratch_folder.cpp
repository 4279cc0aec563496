// SPDX-License-Identifier: Apache-2.0
// mkdtemp, then a lock; see scratch_folder.hpp. A run that cleans up may take the folder in between: then another is
// made.
#include "bundle/host/scratch_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "bundle/host/empty_folder.hpp"
#include "bundle/host/named_lock.hpp"
#include "bundle/host/trusted_path.hpp"
#include "sealift/bundle/host/interrupt.hpp"

namespace sealift::bundle {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kRandom = "-XXXXXX";

Locking lock_folder(const fs::path& folder, Descriptor& lock) {
  lock = Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!lock) return errno == ENOENT ? Locking::Gone : Locking::Without;
  return try_lock(lock, folder);
}

fs::path temporary_files() {
  const fs::path folder = fs::temp_directory_path();
  PathFault ignored;
  return find_path_fault((folder / "new").c_str(), Above::Site, ignored) ? fs::path("/tmp") : folder;
}

bool is_own(const Descriptor& folder) {
  struct stat status {};
  return ::fstat(folder.get(), &status) == 0 && status.st_uid == ::geteuid();
}

bool was_interrupted() {
  try {
    stop_if_interrupted();
    return false;
  } catch (const Interrupted&) {
    return true;
  }
}

// Since somebody waits for our end: for all that an interrupted program has.
constexpr std::chrono::milliseconds kPatience{1500};

bool has_time() {
  if (!was_interrupted()) return true;
  static const auto end = std::chrono::steady_clock::now() + kPatience;
  return std::chrono::steady_clock::now() < end;
}

}  // namespace

ScratchFolder::ScratchFolder(std::string_view name) : ScratchFolder(name, temporary_files()) {}

void remove_scratch(const fs::path& folder) {
  if (const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)); opened)
    empty_folder(opened.get(), has_time);
  std::error_code ignored;
  if (has_time())
    fs::remove_all(folder, ignored);  // what is left of a tree that is too deep, and the folder
  else
    fs::remove(folder, ignored);
}

ScratchFolder::ScratchFolder(std::string_view name, const fs::path& parent) {
  Locking locking = Locking::Gone;
  while (locking == Locking::Gone || locking == Locking::Held) {
    std::string pattern = (parent / (std::string(name) + std::string(kRandom))).string();
    if (::mkdtemp(pattern.data()) == nullptr) throw_errno("a temporary folder cannot be made", pattern);
    path_ = pattern;
    locking = lock_folder(path_, lock_);
  }
}

ScratchFolder::~ScratchFolder() {
  remove_scratch(path_);
}

void ScratchFolder::remove_abandoned(const fs::path& parent, std::string_view name) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator there(parent, error); !error && there != fs::directory_iterator(); there.increment(error))
    if (const std::string its = there->path().filename().string();
        its.size() > kRandom.size() && its[its.size() - kRandom.size()] == '-' &&
        (name.empty() || std::string_view(its).substr(0, its.size() - kRandom.size()) == name))
      found.push_back(there->path());
  for (const fs::path& folder : found) {
    Descriptor lock;
    if (lock_folder(folder, lock) == Locking::Got && is_own(lock)) remove_scratch(folder);
  }
}

void ScratchFolder::remove_abandoned_temporary(std::string_view name) {
  remove_abandoned(temporary_files(), name);
}

}  // namespace sealift::bundle
