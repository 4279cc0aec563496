// SPDX-License-Identifier: Apache-2.0
// The cache folder; see cache.hpp.
#include "packager/files/cache.hpp"

#include <cstdlib>
#include <fstream>

#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/host/interrupt.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Digest;
using bundle::Error;
using bundle::ErrorCode;

Digest digest_of_file(const fs::path& path, const std::function<void(std::uint64_t)>& progress) {
  bundle::FileSource source(path);
  bundle::Hasher hasher;
  for (std::uint64_t offset = 0; offset < source.size();) {
    bundle::stop_if_interrupted();
    const bundle::ByteView piece = source.view(offset, std::size_t{1} << 20);
    hasher.update(piece);
    offset += piece.size();
    if (progress) progress(piece.size());
  }
  return hasher.finish();
}

Cache::Cache(fs::path root, bundle::DigestAlgorithm payload_digest)
    : root_(fs::absolute(root)), payload_digest_(payload_digest) {
  std::error_code error;
  for (const char* folder : {"sha256", "parts"}) {
    fs::create_directories(root_ / folder, error);
    if (error) bundle::throw_errno("the cache folder cannot be made", root_ / folder, error.value());
  }
  // The signature line is the one that the cache directory tagging specification demands.
  if (!fs::exists(root_ / "CACHEDIR.TAG"))
    std::ofstream(root_ / "CACHEDIR.TAG") << "Signature: 8a477f597d28d172789f06886806bc55\n"
                                             "# Downloads of sealift-pack; safe to delete.\n";
}

fs::path Cache::default_root() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value != nullptr ? value : "");
  };
  if (!variable("SEALIFT_CACHE").empty()) return variable("SEALIFT_CACHE");
  if (!variable("XDG_CACHE_HOME").empty()) return variable("XDG_CACHE_HOME") / "sealift";
  if (!variable("HOME").empty()) return variable("HOME") / ".cache" / "sealift";
  throw Error(ErrorCode::Usage, {.what = "nothing says where the cache is",
                                 .expected = "SEALIFT_CACHE, XDG_CACHE_HOME or HOME in the environment",
                                 .next = "name a folder with --cache"});
}

bool Cache::contains(const Digest& digest) const {
  std::error_code ignored;
  return fs::is_regular_file(fs::symlink_status(path(digest), ignored));
}

void Cache::adopt(const fs::path& file, const Digest& digest) const {
  std::error_code error;
  fs::rename(file, path(digest), error);
  if (error) bundle::throw_errno("a file cannot be moved into the cache", path(digest), error.value());
}

}  // namespace sealift::packager
