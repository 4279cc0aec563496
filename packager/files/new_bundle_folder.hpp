// SPDX-License-Identifier: Apache-2.0
// The folder in which a bundle is written before one rename gives it its name; `create` and `recut` use it.
// So nothing that exists is overwritten, and no unfinished bundle ever has a bundle's name.
#pragma once

#include <filesystem>

#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

// Throws Conflict when the path exists.
void refuse_existing(const std::filesystem::path& folder);

// Throws Space unless the file system of `folder` has `needed` bytes free.
void check_space(const std::filesystem::path& folder, std::uint64_t needed);

// Copies a program that travels beside the volumes, and makes the copy durable.
void copy_program(const std::filesystem::path& from, const std::filesystem::path& to);

// A hidden folder beside the final path. What an interrupted run left in it is removed; throws Conflict while another
// process writes it, Usage where it is another account's.
class PartialFolder {
 public:
  explicit PartialFolder(const std::filesystem::path& final_path);
  ~PartialFolder();
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Syncs the folder, then renames it. Throws Conflict when the final path exists.
  void become(const std::filesystem::path& final_path);

 private:
  std::filesystem::path path_;
  bundle::Descriptor lock_;
};

}  // namespace sealift::packager
