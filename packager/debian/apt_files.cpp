// SPDX-License-Identifier: Apache-2.0
// Bytes and places of Debian packages; see apt_files.hpp.
#include "packager/debian/apt_files.hpp"

#include "sealift/bundle/core/error.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

std::vector<Download> downloads_of(const LockedApt& apt) {
  std::vector<Download> downloads;
  for (const LockedDeb& deb : apt.debs)
    downloads.push_back({.name = deb.file, .url = deb.url, .sha256 = deb.sha256, .size = deb.size, .bearer = {}});
  return downloads;
}

void require_index(const LockedApt& apt, const Cache& cache) {
  if (apt.debs.empty() || cache.contains(apt.index_sha256)) return;
  throw Error(ErrorCode::Missing, {.what = "the index of the Debian packages that was locked is not in the cache",
                                   .where = cache.path(apt.index_sha256).string(),
                                   .next = "run sealift-pack lock again with the same --cache"});
}

std::vector<PlacedFile> place_files(const LockedApt& apt, const Cache& cache) {
  std::vector<PlacedFile> placed;
  if (apt.debs.empty()) return placed;
  placed.push_back({.into = "apt/Packages",
                    .source = cache.path(apt.index_sha256),
                    .file = {.path = "Packages", .size = apt.index_size, .sha256 = apt.index_sha256}});
  for (const LockedDeb& deb : apt.debs)
    placed.push_back({.into = "apt/" + deb.file,
                      .source = cache.path(deb.sha256),
                      .file = {.path = deb.file, .size = deb.size, .sha256 = deb.sha256}});
  return placed;
}

}  // namespace sealift::packager
