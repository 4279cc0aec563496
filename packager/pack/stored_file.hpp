// SPDX-License-Identifier: Apache-2.0
// The compressed form of what is worth it (an interpreter, programs), made once and kept in the cache like a download.
// So an entry of the next version is, compressed or not, a file whose chunks are known, and costs one pass over it.
#pragma once

#include <filesystem>
#include <vector>

#include "packager/files/known_chunks.hpp"
#include "packager/pack/pack_plan.hpp"

namespace sealift::packager {

struct StoredFile {
  bundle::Entry entry;         // the draft with its stored size and SHA-256
  std::filesystem::path file;  // with the stored bytes
  std::vector<bundle::Digest> chunks;
};

// Of an entry with Encoding::Zstd. Compresses it unless that was done before; throws Digest unless it is what was
// locked, Io and Space.
StoredFile compressed_form(const PlannedEntry& planned, const bundle::Payload& payload, const Cache& cache,
                           const KnownChunks& known);

// The same once the file has turned out to be damaged: it is made again.
StoredFile compress_again(const PlannedEntry& planned, const bundle::Payload& payload, const Cache& cache,
                          const KnownChunks& known);

}  // namespace sealift::packager
