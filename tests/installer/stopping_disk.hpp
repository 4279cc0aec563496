// SPDX-License-Identifier: Apache-2.0
// A disk that stops at the k-th change, for tests that walk through every moment of what changes an installed prefix.
#pragma once

#include "tests/installer/site.hpp"

namespace sealift::test {

// Stops at the k-th change, as a crash would: everything before it is on the disk, nothing after it.
class StoppingDisk final : public installer::Disk {
 public:
  struct Stop {};
  explicit StoppingDisk(int left) : left_(left) {}
  void make_folder(const fs::path& path) override { step(), Disk::make_folder(path); }
  void rename(const fs::path& from, const fs::path& to) override { step(), Disk::rename(from, to); }
  void remove_tree(const fs::path& path) override {
    step();
    std::error_code ignored;  // and half-way through a folder
    for (const fs::directory_entry& entry : fs::directory_iterator(path, ignored)) {
      step();
      Disk::remove_tree(entry.path());
    }
    Disk::remove_tree(path);
  }
  bundle::Descriptor create(const fs::path& path, mode_t mode) override { return step(), Disk::create(path, mode); }
  bool link(const installer::FileName& from, const installer::FileName& to) override {
    return step(), Disk::link(from, to);
  }
  void make_symlink(std::string_view target, const fs::path& path) override {
    step(), Disk::make_symlink(target, path);
  }
  void sync_all(const fs::path& path) override { step(), Disk::sync_all(path); }
  void sync_folder(const fs::path& path) override { step(), Disk::sync_folder(path); }

 private:
  void step() {
    if (left_-- == 0) throw Stop{};
  }
  int left_;
};

}  // namespace sealift::test
