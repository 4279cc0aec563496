// SPDX-License-Identifier: Apache-2.0
// What others see in a SquashFS image: the kernel, where this process may mount, else unsquashfs. Where there is
// neither, a test says so and passes.
#pragma once

#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tests/support/disk_image.hpp"
#include "tests/support/left_out.hpp"

namespace sealift::test {

class ShownImage {
 public:
  explicit ShownImage(const std::filesystem::path& image) {
    const std::filesystem::path mounted = dir_ / "mounted", unpacked = dir_ / "unpacked";
    std::filesystem::create_directory(mounted);
    const std::string mount = "mount -t squashfs -o loop,ro,nodev,nosuid " + image.string() + " " + mounted.string();
    if (::geteuid() == 0 && std::system((mount + " 2>/dev/null").c_str()) == 0) {
      by_kernel_ = true;
      path_ = mounted;
    } else if (std::system(
                   ("unsquashfs -no-progress -d " + unpacked.string() + " " + image.string() + " >/dev/null 2>&1")
                       .c_str()) == 0) {
      path_ = unpacked;
    } else {
      left_out("nothing here can show an image: neither mount nor unsquashfs");
    }
  }
  ShownImage(const ShownImage&) = delete;
  ShownImage& operator=(const ShownImage&) = delete;
  ~ShownImage() {
    if (by_kernel_) ::umount2(path_.c_str(), MNT_DETACH);
  }

  explicit operator bool() const { return !path_.empty(); }
  const std::filesystem::path& path() const { return path_; }
  bool by_kernel() const { return by_kernel_; }

 private:
  TempDir dir_;
  std::filesystem::path path_;
  bool by_kernel_ = false;
};

// A tree without what an image does not keep: which names are hard links of which.
inline DiskImage without_twins(DiskImage image) {
  for (auto& [path, there] : image) there.twin = path;
  return image;
}

}  // namespace sealift::test
