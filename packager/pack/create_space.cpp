// SPDX-License-Identifier: Apache-2.0
// Sums over contents; see create_space.hpp. Cache and bundle are counted together where they share a file system.
#include "packager/pack/create_space.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Digest;
using bundle::Error;
using bundle::ErrorCode;

namespace {

// Equal files are carried once.
class Sum {
 public:
  void add(const Digest& digest, std::uint64_t size) {
    if (seen_.insert(digest).second) sum_ += std::min(size, bundle::kMaxPayloadSize);
  }
  std::uint64_t bytes() const { return sum_; }

 private:
  std::set<Digest> seen_;
  std::uint64_t sum_ = 0;
};

std::uint64_t payload_of(const std::vector<Content>& contents) {
  Sum sum;
  for (const Content& content : contents) sum.add(content.sha256, content.size);
  return sum.bytes();
}

std::uint64_t missing_of(const std::vector<Content>& contents, const Cache& cache) {
  Sum sum;
  for (const Download& download : downloads_of(contents)) {
    if (cache.contains(download.sha256)) continue;
    std::error_code error;
    const std::uint64_t have = fs::file_size(cache.part(download.sha256), error);
    sum.add(download.sha256, download.size - std::min(download.size, error ? 0 : have));
  }
  return sum.bytes();
}

dev_t device_of(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_dev : 0;
}

}  // namespace

void require_space(const std::vector<Content>& contents, const Cache& cache, const fs::path& out) {
  fs::path folder = out;
  std::error_code none;
  while (!fs::exists(folder, none) && folder.has_relative_path()) folder = folder.parent_path();
  const std::uint64_t payload = payload_of(contents);
  // When the cache has a file system of its own, fetch checks that one.
  const std::uint64_t missing = device_of(folder) == device_of(cache.root()) ? missing_of(contents, cache) : 0;
  if (const std::uint64_t free = fs::space(folder).available; free < payload + missing)
    throw Error(ErrorCode::Space, {.what = "there is not enough room for the bundle",
                                   .where = folder.string(),
                                   .expected = human_size(payload) + " for the bundle" +
                                               (missing == 0 ? "" : " and " + human_size(missing) + " for downloads"),
                                   .got = human_size(free) + " free",
                                   .next = "make room, or name other folders with -o and --cache"});
}

}  // namespace sealift::packager
