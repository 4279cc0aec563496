// SPDX-License-Identifier: Apache-2.0
// Files by their SHA-256, kept between runs: CACHE/sha256/<hex>, and CACHE/parts/<hex>.part while one is downloaded.
// The cache is not trusted: a file is used only after its digest was computed again.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "sealift/bundle/core/digest.hpp"

namespace sealift::packager {

// The SHA-256 of a file; `progress` gets the number of bytes of each piece. Throws Interrupted, Io.
bundle::Digest digest_of_file(const std::filesystem::path& path,
                              const std::function<void(std::uint64_t)>& progress = {});

class Cache {
 public:
  // Creates the folder, marked as a cache for backup programs (CACHEDIR.TAG). What comes into it by way of this value
  // is for a payload whose chunks are digested so.
  explicit Cache(std::filesystem::path root, bundle::DigestAlgorithm payload_digest = bundle::DigestAlgorithm::Sha256);

  // $SEALIFT_CACHE, else $XDG_CACHE_HOME/sealift, else ~/.cache/sealift.
  static std::filesystem::path default_root();

  const std::filesystem::path& root() const { return root_; }
  bundle::DigestAlgorithm payload_digest() const { return payload_digest_; }
  std::filesystem::path path(const bundle::Digest& digest) const { return root_ / "sha256" / digest.hex(); }
  std::filesystem::path part(const bundle::Digest& digest) const { return root_ / "parts" / (digest.hex() + ".part"); }
  bool contains(const bundle::Digest& digest) const;

  // Moves a finished file into the cache; it must be on the same file system, and the caller has checked its digest.
  void adopt(const std::filesystem::path& file, const bundle::Digest& digest) const;

 private:
  std::filesystem::path root_;
  bundle::DigestAlgorithm payload_digest_;
};

}  // namespace sealift::packager
