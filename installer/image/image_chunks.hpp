// SPDX-License-Identifier: Apache-2.0
// FILE.chunks, beside an image: a digest for each 4 MiB of it, as a bundle has for its payload. The digest of this list
// names the image: who has it from a source that they trust can check each part of the file when it is read.
#pragma once

#include <filesystem>
#include <vector>

#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::installer {

std::filesystem::path chunk_list_of(const std::filesystem::path& image);

// The digests of the file's chunks; reads all of it. Of another size and algorithm: as a payload may have them.
std::vector<bundle::Digest> digest_chunks(const std::filesystem::path& image, unsigned threads,
                                          std::uint64_t chunk_size = bundle::kDefaultChunkSize,
                                          bundle::DigestAlgorithm algorithm = bundle::DigestAlgorithm::Sha256);
// The list as it is written, 32 bytes a chunk.
bundle::Bytes write_chunk_list(const std::vector<bundle::Digest>& chunks);

// The image as a payload of one volume, for bundle::PayloadReader. `list` is the digest of its chunk list.
bundle::Payload payload_of_image(const std::filesystem::path& image, const bundle::Digest& list);

}  // namespace sealift::installer
