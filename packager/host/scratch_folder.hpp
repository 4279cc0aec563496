// SPDX-License-Identifier: Apache-2.0
// A folder for intermediate files that is gone when the step that needed it is over.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

class ScratchFolder {
 public:
  // Below `parent`, or where the system keeps temporary files.
  explicit ScratchFolder(std::string_view name,
                         const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string pattern = (parent / (std::string(name) + "-XXXXXX")).string();
    if (::mkdtemp(pattern.data()) == nullptr) bundle::throw_errno("a temporary folder cannot be made", pattern);
    path_ = pattern;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// The same for one file with a name that somebody else demands; what an interrupted run left is removed first.
class ScratchFile {
 public:
  explicit ScratchFile(std::filesystem::path path) : path_(std::move(path)) { std::filesystem::remove(path_); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace sealift::packager
