// SPDX-License-Identifier: Apache-2.0
// The folder that a bundle grows in until it gets its name in one rename; `create` and `recut` write into one.
// Nothing that exists is overwritten, and nothing half-done is left under a bundle's name.
#pragma once

#include <filesystem>

#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

// Throws Conflict when something is there.
void refuse_existing(const std::filesystem::path& folder);

// Throws Space unless the file system of `folder` takes so many bytes more.
void check_space(const std::filesystem::path& folder, std::uint64_t needed);

// What an interrupted run left is thrown away; a living one is a Conflict.
class PartialFolder {
 public:
  explicit PartialFolder(const std::filesystem::path& final_path);
  ~PartialFolder();
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Durable before it is visible.
  void become(const std::filesystem::path& final_path);

 private:
  std::filesystem::path path_;
  bundle::Descriptor lock_;
};

}  // namespace sealift::packager
