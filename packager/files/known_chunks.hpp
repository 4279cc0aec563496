// SPDX-License-Identifier: Apache-2.0
// The digests of the chunks of files, by the files' SHA-256: CACHE/chunks. A file of which they are known is packed
// with one pass over its bytes: the chunks are hashed in any case, and where they are the known ones, so is the
// SHA-256. A statement about bytes and not about a file: it stays true whatever happens to the file.
#pragma once

#include <optional>
#include <vector>

#include "packager/files/cache.hpp"
#include "sealift/bundle/payload/chunk_digester.hpp"

namespace sealift::packager {

// Safe from several threads, and for several processes.
class KnownChunks {
 public:
  explicit KnownChunks(const Cache& cache);

  // Of the file with this SHA-256, cut and digested as `payload` says; nothing where they are not known.
  std::optional<std::vector<bundle::Digest>> read(const bundle::Digest& sha256, const bundle::Payload& payload) const;
  // The caller has computed both of the same bytes.
  void write(const bundle::Digest& sha256, const bundle::Payload& payload,
             const std::vector<bundle::Digest>& chunks) const;

 private:
  std::filesystem::path path(const bundle::Digest& sha256, const bundle::Payload& payload) const;

  std::filesystem::path folder_;
};

}  // namespace sealift::packager
