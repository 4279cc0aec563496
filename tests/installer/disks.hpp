// SPDX-License-Identifier: Apache-2.0
// Back ends for the installer's one door to a file system: one that counts and fails, one that writes down what was
// done for the crash model. Both do the real thing below, in memory where the machine has such a folder.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>

#include "installer/disk/disk.hpp"
#include "installer/disk/disk_error.hpp"
#include "tests/support/crash_model.hpp"

namespace sealift::test {

namespace fs = std::filesystem;

// A real one that says that it can hold an environment, whatever the folder for tests is mounted as.
class TestDisk : public installer::Disk {
 public:
  installer::Mount mount(const fs::path&) const override { return {}; }
  void sync_all(const fs::path&) override {}  // in memory it means nothing; elsewhere it would be all that a test does
};

// Counts the operations, and has some of them fail.
class FaultyDisk final : public TestDisk {
 public:
  enum class Does { Allocates, Syncs, Removes };
  // Whether operation `number`, from 1 on, fails; and with what.
  using Verdict = std::function<bool(std::uint64_t number, Does)>;

  FaultyDisk() = default;
  FaultyDisk(int error, Verdict fails) : error_(error), fails_(std::move(fails)) {}

  std::uint64_t operations() const { return operations_; }
  std::uint64_t bytes_written() const { return bytes_written_; }
  bool failed() const { return failed_; }

  void make_folder(const fs::path& path) override {
    step(path, Does::Allocates);
    Disk::make_folder(path);
  }
  bundle::Descriptor create(const fs::path& path, mode_t mode) override {
    step(path, Does::Allocates);
    return Disk::create(path, mode);
  }
  void write(const bundle::Descriptor& file, const fs::path& path, bundle::ByteView bytes) override {
    const auto tear = [&] { Disk::write(file, path, bytes.first(bytes.size() / 2)); };
    step(path, Does::Allocates, tear);
    bytes_written_ += bytes.size();
    Disk::write(file, path, bytes);
  }
  void close(bundle::Descriptor file, const fs::path& path) override {
    step(path, Does::Allocates);
    Disk::close(std::move(file), path);
  }
  bundle::Descriptor open_lock(const fs::path& path) override {
    step(path, Does::Allocates);
    return Disk::open_lock(path);
  }
  bool link(const installer::FileName& from, const installer::FileName& to) override {
    step(to.path(), Does::Allocates);
    return Disk::link(from, to);
  }
  void make_symlink(std::string_view target, const fs::path& path) override {
    step(path, Does::Allocates);
    Disk::make_symlink(target, path);
  }
  void rename(const fs::path& from, const fs::path& to) override {
    step(to, Does::Allocates);
    Disk::rename(from, to);
  }
  void remove_tree(const fs::path& path) override {
    step(path, Does::Removes);
    Disk::remove_tree(path);
  }
  void sync_all(const fs::path& path) override { step(path, Does::Syncs); }
  void sync_folder(const fs::path& path) override {
    step(path, Does::Syncs);
    Disk::sync_folder(path);
  }

 private:
  void step(const fs::path& path, Does what, const std::function<void()>& before_failing = {}) {
    if (const std::uint64_t number = ++operations_; !fails_ || !fails_(number, what)) return;
    failed_ = true;
    if (before_failing) before_failing();
    installer::throw_disk_error("the test has this fail", path, error_);
  }

  int error_ = 0;
  Verdict fails_;
  std::atomic<std::uint64_t> operations_{0}, bytes_written_{0};
  std::atomic<bool> failed_{false};
};

// Does it and writes it down. One thread.
class RecordingDisk : public TestDisk {
 public:
  RecordingDisk(fs::path root, CrashModel& model, bool hard_links = true)
      : root_(std::move(root)), model_(model), hard_links_(hard_links) {}

  void make_folder(const fs::path& path) override {
    Disk::make_folder(path);
    model_.make(below(path), {.type = DiskNode::Type::Folder, .mode = 0755});
  }
  bundle::Descriptor create(const fs::path& path, mode_t mode) override {
    bundle::Descriptor file = Disk::create(path, mode);
    model_.make(below(path), {.type = DiskNode::Type::File, .mode = mode});
    return file;
  }
  void write(const bundle::Descriptor& file, const fs::path& path, bundle::ByteView bytes) override {
    Disk::write(file, path, bytes);
    model_.write(below(path), std::string(bundle::as_text(bytes)));
  }
  bundle::Descriptor open_lock(const fs::path& path) override {
    bundle::Descriptor file = Disk::open_lock(path);
    model_.make(below(path), {.type = DiskNode::Type::File, .mode = 0644});
    return file;
  }
  bool link(const installer::FileName& from, const installer::FileName& to) override {
    if (!hard_links_ || !Disk::link(from, to)) return false;
    model_.link(below(from.path()), below(to.path()));
    return true;
  }
  void make_symlink(std::string_view target, const fs::path& path) override {
    Disk::make_symlink(target, path);
    model_.make(below(path), {.type = DiskNode::Type::Link, .mode = 0777, .data = std::string(target)});
  }
  void rename(const fs::path& from, const fs::path& to) override {
    Disk::rename(from, to);
    model_.rename(below(from), below(to));
  }
  void remove_tree(const fs::path& path) override {
    Disk::remove_tree(path);
    model_.remove(below(path));
  }
  void sync_all(const fs::path&) override { model_.sync_all(); }
  void sync_folder(const fs::path& path) override { model_.sync_folder(below(path)); }

 private:
  std::string below(const fs::path& path) const {
    const std::string text = path.lexically_relative(root_).string();
    if (text == ".") return "";
    if (text.starts_with("..")) throw std::logic_error(path.string() + " is not below the disk of this test");
    return text;
  }

  fs::path root_;
  CrashModel& model_;
  bool hard_links_;
};

}  // namespace sealift::test
