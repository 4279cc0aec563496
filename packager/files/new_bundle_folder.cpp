// SPDX-License-Identifier: Apache-2.0
// See new_bundle_folder.hpp. The flock is on the unfinished folder itself, so it ends with the process that holds it.
#include "packager/files/new_bundle_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "bundle/host/named_lock.hpp"
#include "bundle/host/require_trusted.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/host/progress.hpp"

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
                                   .expected = bundle::human_size(needed) + " free",
                                   .got = bundle::human_size(free) + " free",
                                   .next = "make room, or name another folder with -o"});
}

void copy_program(const fs::path& from, const fs::path& to) {
  fs::copy_file(from, to);
  fs::permissions(to, fs::perms(0755));
  if (::fsync(bundle::InputFile(to).descriptor()) != 0) bundle::throw_errno("a file cannot be synced", to);
}

PartialFolder::PartialFolder(const fs::path& final_path)
    : path_(final_path.parent_path() / ("." + final_path.filename().string() + ".partial")) {
  fs::create_directories(path_.parent_path());
  std::optional<bundle::Descriptor> locked = bundle::lock_named(path_, [this] {
    for (;;) {  // who had it may remove it in between
      if (::mkdir(path_.c_str(), 0777) != 0 && errno != EEXIST) bundle::throw_errno("a folder cannot be made", path_);
      bundle::Descriptor folder(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
      if (!folder && errno != ENOENT) bundle::throw_errno("a folder cannot be opened", path_);
      if (folder) return folder;
    }
  });
  if (!locked)
    throw Error(
        ErrorCode::Conflict,
        {.what = "another process is making this bundle", .where = path_.string(), .next = "wait for it, or stop it"});
  lock_ = *std::move(locked);
  try {
    bundle::require_trusted_open(lock_.get(), path_, "another account may change what is packed here");
  } catch (...) {
    path_.clear();  // it is not ours to remove
    throw;
  }
  // Through the descriptor: a user who may rename in the folder above could have another one lie here by now.
  const fs::path opened = "/proc/self/fd/" + std::to_string(lock_.get());
  for (const fs::directory_entry& entry : fs::directory_iterator(opened)) fs::remove_all(entry.path());
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
