// SPDX-License-Identifier: Apache-2.0
// Sources and destinations of Debian packages; see apt_files.hpp.
#include "packager/debian/apt_files.hpp"

#include "sealift/bundle/core/error.hpp"

namespace sealift::packager {

namespace {

Content content_of(const std::string& name, const std::string& file, std::uint64_t size, const bundle::Digest& sha256,
                   Origin origin) {
  return {.name = name,
          .owner = "the Debian packages",
          .entry = "files/apt/" + file,
          .into = "apt/" + file,
          .size = size,
          .sha256 = sha256,
          .origin = std::move(origin)};
}

}  // namespace

// The job's reader has already checked the target.
std::string debian_arch(const std::string& arch) {
  return arch == "x86_64" ? "amd64" : arch == "aarch64" ? "arm64" : arch;
}

std::vector<Content> contents_of(const LockedApt& apt) {
  if (apt.debs.empty()) return {};
  std::vector<Content> contents = {
      content_of("the index of the Debian packages", "Packages", apt.index_size, apt.index_sha256, FromLock{})};
  for (const LockedDeb& deb : apt.debs)
    contents.push_back(content_of(deb.file, deb.file, deb.size, deb.sha256, FromServer{.url = deb.url}));
  return contents;
}

}  // namespace sealift::packager
