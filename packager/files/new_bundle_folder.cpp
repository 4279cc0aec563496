// SPDX-License-Identifier: Apache-2.0
// See new_bundle_folder.hpp. The flock is on the unfinished folder itself, so it ends with the process that holds it.
#include "packager/files/new_bundle_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "packager/host/console.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Error;
using bundle::ErrorCode;

void refuse_existing(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(folder, ignored))) return;
  throw Error(ErrorCode::Conflict, {.what = "this bundle exists already and is not overwritten",
                                    .where = folder.string(),
                                    .next = "raise the job's version and lock again, or remove the folder"});
}

void check_space(const fs::path& folder, std::uint64_t needed) {
  if (const std::uint64_t free = fs::space(folder).available; free < needed)
    throw Error(ErrorCode::Space, {.what = "there is not enough room for the bundle",
                                   .where = folder.string(),
                                   .expected = human_size(needed) + " free",
                                   .got = human_size(free) + " free",
                                   .next = "make room, or name another folder with -o"});
}

PartialFolder::PartialFolder(const fs::path& final_path)
    : path_(final_path.parent_path() / ("." + final_path.filename().string() + ".partial")) {
  fs::create_directories(path_);
  lock_ = bundle::Descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock_) bundle::throw_errno("a folder cannot be opened", path_);
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
    throw Error(
        ErrorCode::Conflict,
        {.what = "another process is making this bundle", .where = path_.string(), .next = "wait for it, or stop it"});
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) fs::remove_all(entry.path());
}

PartialFolder::~PartialFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

void PartialFolder::become(const fs::path& final_path) {
  ::fsync(lock_.get());
  refuse_existing(final_path);
  fs::rename(path_, final_path);
  path_.clear();
  const bundle::Descriptor parent(::open(final_path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent || ::fsync(parent.get()) != 0) bundle::throw_errno("a folder cannot be synced", final_path);
}

}  // namespace sealift::packager
