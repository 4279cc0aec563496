// SPDX-License-Identifier: Apache-2.0
// A file of the cache while it is downloaded: written and hashed in the same order, kept when the download stops, by
// SHA-256 and by chunks, so that `create` has one pass to make. What an earlier run left is hashed first and continued.
// Locked, so that two packers can share a cache.
#pragma once

#include <filesystem>

#include "packager/files/known_chunks.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

class PartFile {
 public:
  // Opens cache.part(digest), or makes it. Throws Conflict when another process writes it, Io when it cannot be
  // written. Bytes that come and go are told to `progress`.
  PartFile(const Cache& cache, const bundle::Digest& digest, bundle::Progress& progress);

  std::uint64_t size() const { return size_; }

  // Appends; throws Io or Space.
  void write(bundle::ByteView bytes);

  // Throws the bytes away and begins anew.
  void discard();

  // The digest of all that was written; only discard, adopt and remove may follow.
  bundle::Digest finish_digest() { return hasher_.finish(); }

  // Makes the synced file part of the cache. The caller has checked its digest.
  void adopt();

  void remove();

 private:
  void hash_existing();

  const Cache& cache_;
  bundle::Digest digest_;
  bundle::Progress& progress_;
  std::filesystem::path path_;
  bundle::Descriptor file_;
  bundle::Hasher hasher_;
  bundle::Payload payload_;  // whose chunks
  bundle::ChunkDigester chunks_{payload_.chunk_size, payload_.digest};
  std::uint64_t size_ = 0;
};

}  // namespace sealift::packager
