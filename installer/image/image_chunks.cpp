// SPDX-License-Identifier: Apache-2.0
// The reader of a bundle's payload reads an image as well, so there is one way to check a chunk and one way to say
// which one was wrong.
#include "installer/image/image_chunks.hpp"

#include <algorithm>

#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/parallel_for.hpp"
#include "sealift/bundle/payload/bundle_folder.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

fs::path chunk_list_of(const fs::path& image) {
  return image.string() + std::string(bundle::kChunksSuffix);
}

std::vector<bundle::Digest> digest_chunks(const fs::path& image, unsigned threads, std::uint64_t chunk_size,
                                          bundle::DigestAlgorithm algorithm) {
  const bundle::InputFile file(image);
  std::vector<bundle::Digest> chunks(static_cast<std::size_t>((file.size() + chunk_size - 1) / chunk_size));
  bundle::parallel_for(threads, chunks.size(), [&](std::size_t index) {
    const std::uint64_t at = index * chunk_size;
    bundle::Bytes bytes(static_cast<std::size_t>(std::min(chunk_size, file.size() - at)));
    file.read_exactly(at, bytes);
    bundle::Hasher hasher(algorithm);
    hasher.update(bytes);
    chunks[index] = hasher.finish();
  });
  return chunks;
}

bundle::Bytes write_chunk_list(const std::vector<bundle::Digest>& chunks) {
  bundle::Bytes list;
  for (const bundle::Digest& chunk : chunks) list.insert(list.end(), chunk.bytes.begin(), chunk.bytes.end());
  return list;
}

bundle::Payload payload_of_image(const fs::path& image, const bundle::Digest& list) {
  const bundle::InputFile file(image);
  return {.size = file.size(),
          .chunk_list_digest = list,
          .volumes = {{.name = image.filename().string(), .size = file.size()}}};
}

}  // namespace sealift::installer
