// SPDX-License-Identifier: Apache-2.0
// Whether this machine can mount by FUSE at all, looked at before anything is done: the device, who may mount, and the
// folder. Each refusal says what to do, at last to unpack.
#pragma once

#include <filesystem>

namespace sealift::installer {

// What is looked at; a test puts other paths here.
struct FuseNeeds {
  std::filesystem::path device = "/dev/fuse";
  std::filesystem::path helper = "/usr/bin/fusermount3";  // what mounts for who is not root
  bool root = false;                                      // the caller may mount
};
FuseNeeds fuse_needs_here();

// Throws Platform naming what is missing.
void require_fuse(const FuseNeeds& needs);
// Throws Missing or Conflict unless `folder` can be mounted over: a folder, and no image is mounted there yet.
void require_mount_point(const std::filesystem::path& folder);

// Whether an image that we serve is mounted on exactly this folder.
bool is_our_mount(const std::filesystem::path& folder);

}  // namespace sealift::installer
