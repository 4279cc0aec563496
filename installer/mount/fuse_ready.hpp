// SPDX-License-Identifier: Apache-2.0
// The folder that is to show an image, looked at before anything is done.
#pragma once

#include <filesystem>

namespace sealift::installer {

// Throws Missing or Conflict unless `folder` can be mounted over: a folder, and no image is mounted there yet.
void require_mount_point(const std::filesystem::path& folder);

// Whether an image that we serve is mounted on exactly this folder.
bool is_our_mount(const std::filesystem::path& folder);

}  // namespace sealift::installer
