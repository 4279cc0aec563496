// SPDX-License-Identifier: Apache-2.0
// Every change that the installer makes to a file system goes through this class.
// Virtual, so that tests can install onto a full, counting or faulty disk, and can record every operation to see what a
// crash after each of them leaves behind (tests/support/crash_model.hpp).
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string_view>

#include "sealift/bundle/core/file.hpp"

namespace sealift::installer {

// What an ordinary user may still write to a file system.
struct FreeSpace {
  std::uint64_t bytes = 0;
  std::uint64_t inodes = 0;  // the largest number where the file system does not count them
};

// What a file system is and how it is mounted.
struct Mount {
  long type = 0;  // as statfs(2) lists them
  bool read_only = false;
  bool no_exec = false;
};

// A folder opened once for many names in it: resolving its path for each name would cost more than the name itself.
class OpenFolder {
 public:
  OpenFolder(std::filesystem::path path, bundle::Descriptor open) : path_(std::move(path)), open_(std::move(open)) {}
  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return open_.get(); }

 private:
  std::filesystem::path path_;
  bundle::Descriptor open_;
};

struct FileName {
  std::filesystem::path path() const { return folder.path() / name; }

  const OpenFolder& folder;
  const char* name;
};

// A folder below which nothing is followed: see Disk::anchor.
struct AnchorFolder {
  std::filesystem::path path;
  bundle::Descriptor open;
};

// Paths are the caller's; every failure throws Io, Space, Missing or Conflict with the path. Safe from several threads.
class Disk {
 public:
  Disk() = default;
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;
  virtual ~Disk() = default;

  // From here on, every path below `folder` is resolved from one descriptor of it, and a symbolic link on the way is
  // refused instead of followed: nobody can have what is written or removed there hit another folder. Returns what was
  // in force before; nullptr: nothing. Not while another thread uses this disk.
  std::shared_ptr<const AnchorFolder> anchor(const std::filesystem::path& folder);
  void anchor(std::shared_ptr<const AnchorFolder> before) { anchor_ = std::move(before); }

  // Of the file system that `path`, or its nearest parent that exists, lies on.
  virtual FreeSpace free_space(const std::filesystem::path& path) const;
  virtual Mount mount(const std::filesystem::path& path) const;

  // 0755 whatever the umask is; fine when the folder exists; anything else in its place is a Conflict.
  virtual void make_folder(const std::filesystem::path& path);
  // A new file of exactly this mode, whatever the umask is; nothing that exists is opened.
  virtual bundle::Descriptor create(const std::filesystem::path& path, mode_t mode);
  virtual void write(const bundle::Descriptor& file, const std::filesystem::path& path, bundle::ByteView bytes);
  // Reports what close(2) reports: on a network file system it may be the first to report a full quota.
  virtual void close(bundle::Descriptor file, const std::filesystem::path& path);
  // Has the kernel hold every later read of this closed file to a digest, and refuse every write to it, where the file
  // system offers that (fs-verity: ext4 and f2fs if made so, btrfs). Returns whether it does.
  virtual bool protect(const std::filesystem::path& path);
  // The file of the prefix lock, made if missing. It is never written through this class and never removed.
  virtual bundle::Descriptor open_lock(const std::filesystem::path& path);
  OpenFolder open_folder(const std::filesystem::path& path) const;  // throws Missing, Io
  // Makes a second name for `from`; false when this file system, or this file, cannot have one.
  virtual bool link(const FileName& from, const FileName& to);
  virtual void make_symlink(std::string_view target, const std::filesystem::path& path);
  // Replaces a file or symbolic link at `to`; a folder that is not empty is not replaced. Both names change at once.
  virtual void rename(const std::filesystem::path& from, const std::filesystem::path& to);
  // Removes a file or a whole tree, without following links; fine when nothing is there. A crash may leave any part.
  virtual void remove_tree(const std::filesystem::path& path);
  // Everything written so far to the file system of `path` is durable once this returns.
  virtual void sync_all(const std::filesystem::path& path);
  // The names in this folder are durable once this returns.
  virtual void sync_folder(const std::filesystem::path& path);

  // `path` and its missing parents.
  void make_folders(const std::filesystem::path& path);
  // A new small file, not synced.
  void write_new(const std::filesystem::path& path, std::string_view text, mode_t mode);

 private:
  class At;

  bundle::Descriptor open_existing(const std::filesystem::path& path, int flags) const;

  std::shared_ptr<const AnchorFolder> anchor_;
  std::atomic<bool> has_verity_{true};  // until it turns out that it has not
};

}  // namespace sealift::installer
