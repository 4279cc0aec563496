// SPDX-License-Identifier: Apache-2.0
// The digests of the chunks of files, by the files' SHA-256: CACHE/chunks. A file of which they are known is packed
// with one pass over its bytes: the chunks are hashed in any case, and where they are the known ones, so is the
// SHA-256. Statements about bytes and not about a file: they stay true whatever happens to the file. They are notes of
// the cache: one that cannot be kept ends nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "packager/files/cache.hpp"
#include "sealift/bundle/payload/chunk_digester.hpp"

namespace sealift::packager {

// Safe from several threads, and for several processes.
class KnownChunks {
 public:
  explicit KnownChunks(const Cache& cache);

  using Chunks = std::vector<bundle::Digest>;

  // Of the file with this SHA-256 and size in bytes, cut and digested as `payload` says; nothing where they are not
  // known. A file of one chunk needs no record: the digest of that is its own.
  std::optional<Chunks> read(const bundle::Digest& sha256, std::uint64_t size, const bundle::Payload& payload) const;
  // The caller has computed both of the same bytes.
  void write(const bundle::Digest& sha256, std::uint64_t size, const bundle::Payload& payload,
             const Chunks& chunks) const;

  // The SHA-256 of a file, or of bytes, that are about to be locked. Their chunks, of the default size and as the
  // cache's payload is digested, are known afterwards from the same read. `progress` gets the number of bytes of each
  // piece. Throws Interrupted, Io.
  bundle::Digest learn(const std::filesystem::path& file,
                       const std::function<void(std::uint64_t)>& progress = {}) const;
  bundle::Digest learn(bundle::ByteView bytes) const;

  // What compressing the file with this SHA-256 gives; nothing where it was not done yet, or by another version of the
  // library.
  struct Compressed {
    bundle::Digest sha256;
    std::uint64_t size = 0;  // bytes
  };
  std::optional<Compressed> compressed(const bundle::Digest& sha256) const;
  void write_compressed(const bundle::Digest& sha256, const Compressed& stored) const;

  // Whether each file of the tree with this SHA-256 was compared with the digest that its tar says of it.
  bool is_compared_tree(const bundle::Digest& sha256) const;
  void write_compared_tree(const bundle::Digest& sha256) const;

 private:
  std::filesystem::path path(const bundle::Digest& sha256, const bundle::Payload& payload) const;
  std::filesystem::path compressed_path(const bundle::Digest& sha256) const;

  void state(const std::filesystem::path& file, bundle::ByteView body) const;

  Cache cache_;
  std::filesystem::path folder_;
  bundle::Payload learnt_;  // how what is learnt is cut and digested
};

}  // namespace sealift::packager
