// SPDX-License-Identifier: Apache-2.0
// Text files that people and later steps read by name (a lock, a recorded result): replaced in one step.
#pragma once

#include <filesystem>
#include <string_view>

#include "bundle/host/scratch_folder.hpp"
#include "sealift/bundle/core/output_file.hpp"

namespace sealift::packager {

// A reader sees the old text or the new one, and two writers at the same time never mix theirs.
inline void replace_text(const std::filesystem::path& path, std::string_view text) {
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();  // also of a bare name
  std::filesystem::create_directories(folder);
  bundle::ScratchFolder::remove_abandoned(folder, ".new");
  const bundle::ScratchFolder scratch(".new", folder);
  bundle::write_text(scratch / "file", text);
  std::filesystem::rename(scratch / "file", path);
}

}  // namespace sealift::packager
