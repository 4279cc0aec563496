// SPDX-License-Identifier: Apache-2.0
// One sync for all of them. Files are compared byte for byte and not by time: a power cut may leave any part of one.
#include "installer/prefix/small_files.hpp"

#include <set>

namespace sealift::installer {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMaxFile = std::uint64_t{1} << 30;

bool has_text(const fs::path& path, const std::string& text) {
  std::error_code error;
  return fs::is_regular_file(fs::symlink_status(path, error)) && fs::file_size(path, error) == text.size() &&
         bundle::read_text(path, kMaxFile) == text;
}

}  // namespace

void replace_small_files(const SmallFiles& files, const Prefix& prefix, const fs::path& staging, Disk& disk) {
  std::vector<std::pair<fs::path, fs::path>> renames;
  for (const auto& [path, text] : files) {
    if (has_text(path, text)) continue;
    renames.emplace_back(staging / ("small-" + std::to_string(renames.size())), path);
    disk.write_new(renames.back().first, text, 0444);
  }
  if (renames.empty()) return;
  disk.sync_all(staging);
  std::set<fs::path> folders = {prefix.folder()};
  for (const auto& [from, to] : renames) {
    if (!folders.contains(to.parent_path())) disk.make_folders(to.parent_path());
    for (fs::path folder = to.parent_path(); folders.insert(folder).second;) folder = folder.parent_path();
    disk.rename(from, to);
  }
  for (const fs::path& folder : folders) disk.sync_folder(folder);
}

}  // namespace sealift::installer
