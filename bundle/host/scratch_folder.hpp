// SPDX-License-Identifier: Apache-2.0
// A folder for intermediate files that is gone when the step that needed it is over. Locked, so that a later run knows
// what a killed one has left: that may be gigabytes.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "sealift/bundle/core/file.hpp"

namespace sealift::bundle {

// Removes a folder that is scratch. After an interrupt somebody waits for our end and it may be gigabytes, so then what
// is left after a second or so stays, for ScratchFolder::remove_abandoned of the next run.
void remove_scratch(const std::filesystem::path& folder);

class ScratchFolder {
 public:
  // Below `parent`, or where the system keeps temporary files: $TMPDIR, unless another user could change what lies
  // there, as under `sudo -E`; then /tmp.
  explicit ScratchFolder(std::string_view name);
  ScratchFolder(std::string_view name, const std::filesystem::path& parent);
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

  // Removes those of this user below `parent` that have this name, or any where it is empty, and that no process holds.
  static void remove_abandoned(const std::filesystem::path& parent, std::string_view name = {});
  // The same where ScratchFolder(name) makes them.
  static void remove_abandoned_temporary(std::string_view name);

 private:
  std::filesystem::path path_;
  Descriptor lock_;
};

// The same for one file with a name that somebody else demands.
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

}  // namespace sealift::bundle
