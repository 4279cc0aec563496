// SPDX-License-Identifier: Apache-2.0
// Whether this machine can mount by FUSE at all: the device, and who may mount. Each refusal says what to do, at last
// to unpack.
#pragma once

#include <filesystem>
#include <string>

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

// What is missing and what to do about it, in one line; "" where nothing is.
std::string fuse_missing(const FuseNeeds& needs);

}  // namespace sealift::installer
