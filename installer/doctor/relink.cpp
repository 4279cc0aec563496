// SPDX-License-Identifier: Apache-2.0
#include "installer/doctor/relink.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "installer/store/store.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

std::vector<CopiedFile> copied_files(const ExpectedTree& tree) {
  std::vector<CopiedFile> copies;
  for (const auto& [path, place] : tree.layout) {
    if (place.type != Place::Type::File) continue;
    CopiedFile copy{.path = tree.folder / path, .source = place.source(), .size = place.file.size};
    struct stat here {
    }, there{};
    if (::lstat(copy.path.c_str(), &here) != 0 || ::lstat(copy.source.c_str(), &there) != 0) continue;
    if (!S_ISREG(here.st_mode) || !S_ISREG(there.st_mode)) continue;
    if (here.st_dev != there.st_dev || here.st_ino != there.st_ino) copies.push_back(std::move(copy));
  }
  return copies;
}

Relinked relink(const std::vector<CopiedFile>& copies, const Prefix& prefix, Disk& disk) {
  Relinked done;
  if (copies.empty()) return done;
  const fs::path staging = prefix.staging() / std::to_string(::getpid());
  disk.make_folder(prefix.staging());
  disk.make_folder(staging);
  const OpenFolder fresh = disk.open_folder(staging);
  for (const CopiedFile& copy : copies) {
    const std::string name = copy.source.filename().string();
    const OpenFolder folder = disk.open_folder(copy.source.parent_path());
    if (!disk.link({.folder = folder, .name = name.c_str()}, {.folder = fresh, .name = "again"})) {
      done.without_links = true;
      break;
    }
    disk.rename(staging / "again", copy.path);
    ++done.files;
    done.bytes += copy.size;
  }
  disk.sync_all(staging);
  sweep(prefix, disk);
  return done;
}

}  // namespace sealift::installer
