// SPDX-License-Identifier: Apache-2.0
// The cache folder; see cache.hpp.
#include "packager/files/cache.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <utility>
#include <vector>

#include "bundle/host/scratch_folder.hpp"
#include "bundle/host/trusted_path.hpp"
#include "packager/host/own_variables.hpp"
#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/output_file.hpp"
#include "sealift/bundle/host/interrupt.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Digest;
using bundle::Error;
using bundle::ErrorCode;

Digest digest_of_file(const fs::path& path, const std::function<void(std::uint64_t)>& progress) {
  bundle::FileSource source(path);
  bundle::Hasher hasher;
  for (std::uint64_t offset = 0; offset < source.size();) {
    bundle::stop_if_interrupted();
    const bundle::ByteView piece = source.view(offset, std::size_t{1} << 20);
    hasher.update(piece);
    offset += piece.size();
    if (progress) progress(piece.size());
  }
  return hasher.finish();
}

namespace {

// Or there is none.
bool is_private_folder(const fs::path& folder) {
  bundle::PathFault ignored;
  return !bundle::find_path_fault(folder.c_str(), bundle::Above::Nobody, ignored);
}

// Whether somebody could put another folder or file in the place of what is made in there. Accounts of a site that
// share a cache with each other trust each other; root trusts none of them.
bool others_may_change(const fs::path& folder) {
  bundle::PathFault ignored;
  return bundle::find_path_fault((folder / "new").c_str(), bundle::Above::Site, ignored);
}

}  // namespace

struct Cache::LostNotes {
  std::mutex guard;
  std::size_t count = 0;
  std::string first;  // why
};

Cache::Cache(fs::path root, bundle::DigestAlgorithm payload_digest)
    : root_(fs::absolute(root)), payload_digest_(payload_digest), lost_(std::make_shared<LostNotes>()) {
  std::error_code error;
  for (const char* folder : {"sha256", "parts", "scratch"}) {
    fs::create_directories(root_ / folder, error);
    if (error) bundle::throw_errno("the cache folder cannot be made", root_ / folder, error.value());
  }
  if (others_may_change(root_ / "scratch") || others_may_change(root_ / "builds"))
    elsewhere_ = std::make_shared<bundle::ScratchFolder>("sealift-work");
  bundle::ScratchFolder::remove_abandoned(root_ / "scratch");
  private_ = is_private_folder(root_) && is_private_folder(root_ / "chunks") && is_private_folder(root_ / "native") &&
             is_private_folder(root_ / "built") && is_private_folder(root_ / "told");
  // The signature line of the cache directory tagging specification.
  if (!fs::exists(root_ / "CACHEDIR.TAG"))
    std::ofstream(root_ / "CACHEDIR.TAG") << "Signature: 8a477f597d28d172789f06886806bc55\n"
                                             "# Downloads of sealift-pack; safe to delete.\n";
}

fs::path Cache::default_root() {
  const auto variable = [](const char* name) { return fs::path(own_variable(name).value_or("")); };
  if (!variable("SEALIFT_CACHE").empty()) return variable("SEALIFT_CACHE");
  if (!variable("XDG_CACHE_HOME").empty()) return variable("XDG_CACHE_HOME") / "sealift";
  if (!variable("HOME").empty()) return variable("HOME") / ".cache" / "sealift";
  throw Error(ErrorCode::Usage, {.what = "nothing says where the cache is",
                                 .expected = "SEALIFT_CACHE, XDG_CACHE_HOME or HOME in the environment",
                                 .next = "name a folder with --cache"});
}

bool Cache::contains(const Digest& digest) const {
  std::error_code ignored;
  return fs::is_regular_file(fs::symlink_status(path(digest), ignored));
}

void Cache::adopt(const fs::path& file, const Digest& digest) const {
  std::error_code error;
  fs::rename(file, path(digest), error);
  if (error == std::errc::cross_device_link) {  // it was made in a temporary folder
    const bundle::ScratchFolder here("new", root_ / "scratch");
    bundle::FileSource source(file);
    bundle::OutputFile copy(here / "file");
    for (std::uint64_t offset = 0; offset < source.size();) {
      const bundle::ByteView piece = source.view(offset, std::size_t{1} << 20);
      copy.write(piece);
      offset += piece.size();
    }
    copy.sync();
    fs::rename(copy.path(), path(digest), error);
  }
  if (error) bundle::throw_errno("a file cannot be moved into the cache", path(digest), error.value());
}

// Each writer in a folder of its own: two processes may keep the same bytes at the same time.
void Cache::keep(std::string_view bytes, const Digest& digest) const {
  const bundle::ScratchFolder scratch("new", this->scratch());
  bundle::write_text(scratch / "file", bytes);
  adopt(scratch / "file", digest);
}

std::optional<std::string> Cache::read_note(const fs::path& file, std::uint64_t max_size) const {
  struct stat status {};
  if (!private_ || ::lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  if (status.st_uid != ::geteuid() && status.st_uid != 0) return std::nullopt;  // from when others might write here
  try {
    return bundle::read_text(file, max_size);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void Cache::note(const fs::path& file, std::string_view text) const {
  const auto lost = [this](const char* why) {
    const std::lock_guard lock(lost_->guard);
    if (lost_->count++ == 0) lost_->first = why;
  };
  try {
    fs::create_directories(file.parent_path());
    const bundle::ScratchFolder scratch("new", this->scratch());
    bundle::OutputFile(scratch / "file").write(bundle::as_bytes(text));
    fs::rename(scratch / "file", file);
  } catch (const Error& error) {
    lost(error.what());
  } catch (const fs::filesystem_error& error) {
    lost(error.what());
  }
}

void Cache::warn_of_notes(bundle::Progress& progress) const {
  if (!private_)
    progress.warn(
        "others may write into the cache " + root_.string() +
        ", so nothing that it remembers was believed and all was hashed anew" +
        (elsewhere_ ? " and made in " + elsewhere_->path().string() : "") +
        ": give each account a cache of "
        "its own, or chmod -R go-w it and remove its chunks, native and built, where others may have left theirs");
  const std::lock_guard lock(lost_->guard);
  if (const std::size_t count = std::exchange(lost_->count, 0); count != 0)
    progress.warn("the cache could not keep " + std::to_string(count) +
                  " note(s) of what was found out about files; all else was done, and the next run finds it out "
                  "again: make room for the cache, or let this account write there (" +
                  lost_->first + ")");
}

}  // namespace sealift::packager
