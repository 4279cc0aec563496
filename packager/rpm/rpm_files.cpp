// SPDX-License-Identifier: Apache-2.0
// Sources and destinations of rpm packages; see rpm_files.hpp.
#include "packager/rpm/rpm_files.hpp"

namespace sealift::packager {

namespace {

Content rpm_content(const std::string& name, const std::string& file, std::uint64_t size, const bundle::Digest& sha256,
                    Origin origin) {
  return {.name = name,
          .owner = "the rpm packages",
          .entry = "files/rpm/" + file,
          .into = "rpm/" + file,
          .size = size,
          .sha256 = sha256,
          .origin = std::move(origin)};
}

}  // namespace

std::vector<Content> contents_of(const LockedRpm& rpm) {
  std::vector<Content> contents;
  for (const LockedRpmIndex& index : rpm.index)
    contents.push_back(
        rpm_content(index.file + " of the rpm packages", index.file, index.size, index.sha256, FromLock{}));
  for (const LockedRpmPackage& package : rpm.rpms)
    contents.push_back(
        rpm_content(package.file, package.file, package.size, package.sha256, FromServer{.url = package.url}));
  return contents;
}

Content made_rpm_content(const std::string& file, const std::string& text) {
  return rpm_content(file + " of the rpm packages", file, text.size(), bundle::sha256(bundle::as_bytes(text)),
                     FromText{text});
}

}  // namespace sealift::packager
