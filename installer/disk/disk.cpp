// SPDX-License-Identifier: Apache-2.0
// One system call an operation, and every failure names its path.
// Modes are set by chmod after creation, so that the operator's umask never decides who can use an environment.
#include "installer/disk/disk.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>

#include "installer/disk/disk_error.hpp"
#include "installer/disk/file_sync.hpp"
#include "installer/disk/open_beneath.hpp"
#include "installer/disk/remove_tree.hpp"
#include "installer/disk/verity.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

namespace {

// On a network file system a signal may interrupt these calls; then nothing has happened yet.
template <class Call>
auto uninterrupted(const Call& call) {
  for (;;)
    if (const auto result = call(); result >= 0 || errno != EINTR) return result;
}

// Large page-aligned pieces bypass the system's page cache: copying gigabytes into it costs more than hashing them, and
// they would have to be written before anything is durable. The alignment of the memory is checked here; that of the
// file offset, and whether the file system can do it, by the system, which answers EINVAL.
constexpr std::size_t kPage = 4096, kLarge = std::size_t{256} << 10;

bool may_bypass_cache(bundle::ByteView bytes) {
  return bytes.size() >= kLarge && bytes.size() % kPage == 0 &&
         reinterpret_cast<std::uintptr_t>(bytes.data()) % kPage == 0;
}

bool set_cache_bypass(const bundle::Descriptor& file, bool past) {
  const int flags = ::fcntl(file.get(), F_GETFL);
  return flags >= 0 && ::fcntl(file.get(), F_SETFL, past ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

fs::path nearest_that_exists(const fs::path& path) {
  fs::path there = fs::absolute(path).lexically_normal();
  std::error_code ignored;
  while (!fs::exists(there, ignored) && there.has_relative_path()) there = there.parent_path();
  return there;
}

// A folder as it stands in front of what is below it, also where its user wrote "out/".
fs::path without_slash_at_end(const fs::path& folder) {
  std::string text = folder.native();
  while (text.ends_with('/')) text.pop_back();
  return text;
}

// The path below the anchor's folder; nothing when it is not below it, or there is no anchor.
std::optional<std::string> below(const AnchorFolder* anchor, const fs::path& path) {
  if (anchor == nullptr) return std::nullopt;
  const std::string &text = path.native(), &root = anchor->path.native();
  if (text.size() <= root.size() + 1 || !text.starts_with(root) || text[root.size()] != '/') return std::nullopt;
  std::string rest = text.substr(root.size());
  rest.erase(0, rest.find_first_not_of('/'));
  while (rest.ends_with('/')) rest.pop_back();
  return rest;
}

// `error` is why a folder on the way to `path` could not be entered.
[[noreturn]] void throw_no_way(const fs::path& path, int error) {
  if (error != ELOOP && error != ENOTDIR) throw_disk_error("a folder of the prefix cannot be entered", path, error);
  throw bundle::Error(bundle::ErrorCode::Conflict,
                      {.what = "a link or a file stands where a folder of the prefix must be",
                       .where = path.string(),
                       .expected = "folders only; nothing was followed",
                       .next = "find out who made it, move it away, and run this again"});
}

}  // namespace

// A path as the system calls take it: the folder that it lies in and its last name. Below the anchor that folder is
// opened without following a link; elsewhere it is the path itself.
class Disk::At {
 public:
  At(const Disk& disk, const fs::path& path) : text_(path.native()) {
    std::optional<std::string> rest = below(disk.anchor_.get(), path);
    if (!rest) return;
    text_ = *std::move(rest);
    anchored_ = true;
    folder_ = disk.anchor_->open.get();
    const std::size_t slash = text_.rfind('/');
    if (slash == text_.npos) return;
    open_ = open_beneath(folder_, text_.substr(0, slash), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (!open_) throw_no_way(path.parent_path(), errno);
    folder_ = open_.get();
    text_.erase(0, slash + 1);
  }

  int folder() const { return folder_; }
  const char* name() const { return text_.c_str(); }
  int no_follow() const { return anchored_ ? AT_SYMLINK_NOFOLLOW : 0; }

 private:
  std::string text_;
  int folder_ = AT_FDCWD;
  bool anchored_ = false;
  bundle::Descriptor open_;
};

std::shared_ptr<const AnchorFolder> Disk::anchor(const fs::path& folder) {
  auto fresh = std::make_shared<AnchorFolder>(
      AnchorFolder{.path = without_slash_at_end(folder),
                   .open = bundle::Descriptor(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC))});
  if (!fresh->open) throw_disk_error("the prefix cannot be opened", folder, errno);
  return std::exchange(anchor_, std::move(fresh));
}

bundle::Descriptor Disk::open_existing(const fs::path& path, int flags) const {
  if (const std::optional<std::string> rest = below(anchor_.get(), path)) {
    bundle::Descriptor open = open_beneath(anchor_->open.get(), *rest, flags | O_CLOEXEC);
    if (!open && (errno == ELOOP || errno == ENOTDIR)) throw_no_way(path, errno);
    return open;
  }
  return bundle::Descriptor(uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC); }));
}

Mount Disk::mount(const fs::path& path) const {
  const fs::path there = nearest_that_exists(path);
  struct statfs info {};
  if (::statfs(there.c_str(), &info) != 0) throw_disk_error("a file system cannot be examined", there, errno);
  return {
      .type = info.f_type, .read_only = (info.f_flags & ST_RDONLY) != 0, .no_exec = (info.f_flags & ST_NOEXEC) != 0};
}

FreeSpace Disk::free_space(const fs::path& path) const {
  const fs::path there = nearest_that_exists(path);
  struct statvfs info {};
  if (::statvfs(there.c_str(), &info) != 0) throw_disk_error("the free space cannot be examined", there, errno);
  return {.bytes = std::uint64_t{info.f_bavail} * info.f_frsize,
          .inodes = info.f_files == 0 ? std::numeric_limits<std::uint64_t>::max() : info.f_favail};
}

void Disk::make_folder(const fs::path& path) {
  const At at(*this, path);
  struct stat status {};  // reading the mode is cheaper than setting it again
  if (::mkdirat(at.folder(), at.name(), 0755) == 0) {
    if (::fstatat(at.folder(), at.name(), &status, at.no_follow()) == 0 && (status.st_mode & 07777) == 0755) return;
    if (::fchmodat(at.folder(), at.name(), 0755, 0) != 0)
      throw_disk_error("a folder's mode cannot be set", path, errno);
    return;
  }
  if (errno != EEXIST) throw_disk_error("a folder cannot be made", path, errno);
  if (::fstatat(at.folder(), at.name(), &status, at.no_follow()) != 0 || !S_ISDIR(status.st_mode))
    throw bundle::Error(bundle::ErrorCode::Conflict, {.what = "something else stands where a folder must be",
                                                      .where = path.string(),
                                                      .expected = "a folder, or nothing",
                                                      .next = "move it away, or choose another --prefix"});
}

void Disk::make_folders(const fs::path& path) {
  std::error_code ignored;
  if (path.has_relative_path() && !fs::is_directory(path.parent_path(), ignored)) make_folders(path.parent_path());
  make_folder(path);
}

bundle::Descriptor Disk::create(const fs::path& path, mode_t mode) {
  const At at(*this, path);
  bundle::Descriptor file(uninterrupted(
      [&] { return ::openat(at.folder(), at.name(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600); }));
  if (!file) throw_disk_error("a file cannot be created", path, errno);
  if (::fchmod(file.get(), mode) != 0) throw_disk_error("a file's mode cannot be set", path, errno);
  return file;
}

void Disk::write(const bundle::Descriptor& file, const fs::path& path, bundle::ByteView bytes) {
  bool past = may_bypass_cache(bytes) && set_cache_bypass(file, true);
  const auto back = [&] {
    if (std::exchange(past, false)) set_cache_bypass(file, false);
  };
  while (!bytes.empty()) {
    const ssize_t count = ::write(file.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EINVAL && past) {
      back();
      continue;
    }
    if (count < 0) throw_disk_error("a file cannot be written", path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    if (!may_bypass_cache(bytes)) back();  // also for the rest of a piece that a full disk cut
  }
}

void Disk::close(bundle::Descriptor file, const fs::path& path) {
  // On Linux the descriptor is closed even after EINTR, and the bytes are still written.
  if (::close(file.release()) != 0 && errno != EINTR) throw_disk_error("a file cannot be finished", path, errno);
}

bool Disk::protect(const fs::path& path) {
  if (!has_verity_) return false;
  const bundle::Descriptor file = open_existing(path, O_RDONLY | O_NOFOLLOW);
  if (file && enable_verity(file)) return true;
  has_verity_ = false;  // the file system does not have it, or has other blocks; nothing depends on it
  return false;
}

bundle::Descriptor Disk::open_lock(const fs::path& path) {
  const At at(*this, path);
  bundle::Descriptor file(
      uninterrupted([&] { return ::openat(at.folder(), at.name(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644); }));
  if (!file) throw_disk_error("the prefix's lock cannot be opened", path, errno);
  return file;
}

OpenFolder Disk::open_folder(const fs::path& path) const {
  bundle::Descriptor open = open_existing(path, O_PATH | O_DIRECTORY);
  if (!open) throw_disk_error("a folder cannot be opened", path, errno);
  return {path, std::move(open)};
}

bool Disk::link(const FileName& from, const FileName& to) {
  if (::linkat(from.folder.descriptor(), from.name, to.folder.descriptor(), to.name, 0) == 0) return true;
  switch (errno) {
    case EPERM:  // also: the file belongs to somebody else and fs.protected_hardlinks is set
    case EMLINK:
    case ENOSYS:
    case EOPNOTSUPP:
    case EXDEV:
      return false;
    default:
      throw_disk_error("a file cannot be linked", to.path(), errno);
  }
}

void Disk::make_symlink(std::string_view target, const fs::path& path) {
  const At at(*this, path);
  if (::symlinkat(std::string(target).c_str(), at.folder(), at.name()) != 0)
    throw_disk_error("a symbolic link cannot be made", path, errno);
}

void Disk::rename(const fs::path& from, const fs::path& to) {
  const At old(*this, from), fresh(*this, to);
  if (::renameat(old.folder(), old.name(), fresh.folder(), fresh.name()) == 0) return;
  if (errno != EEXIST && errno != ENOTEMPTY && errno != EISDIR && errno != ENOTDIR)
    throw_disk_error("a name cannot be given", to, errno);
  throw bundle::Error(bundle::ErrorCode::Conflict,
                      {.what = "something stands where what is finished must go",
                       .where = to.string(),
                       .expected = "nothing",
                       .next = "it was not made by this program or was changed since; move it away and run again"});
}

void Disk::remove_tree(const fs::path& path) {
  int error = 0;
  try {
    const At at(*this, path);
    error = remove_tree_at(at.folder(), at.name());
  } catch (const bundle::Error& fault) {
    if (fault.code() != bundle::ErrorCode::Missing) throw;  // then it is not there either
  }
  if (error != 0) throw_disk_error("a folder cannot be removed", path, error);
}

void Disk::sync_all(const fs::path& path) {
  const bundle::Descriptor folder = open_existing(path, O_RDONLY | O_DIRECTORY);
  if (!folder || uninterrupted([&] { return ::syncfs(folder.get()); }) != 0)
    throw_disk_error("written files cannot be made durable", path, errno);
  static const bool kReports = [] {
    struct utsname host {};
    return ::uname(&host) == 0 && syncfs_reports_failures(host.release);
  }();
  if (!kReports) sync_each_file(path);
}

void Disk::sync_folder(const fs::path& path) {
  const bundle::Descriptor folder = open_existing(path, O_RDONLY | O_DIRECTORY);
  if (!folder || uninterrupted([&] { return ::fsync(folder.get()); }) != 0)
    throw_disk_error("a folder's names cannot be made durable", path, errno);
}

void Disk::write_new(const fs::path& path, std::string_view text, mode_t mode) {
  bundle::Descriptor file = create(path, mode);
  write(file, path, bundle::as_bytes(text));
  close(std::move(file), path);
}

}  // namespace sealift::installer
