// SPDX-License-Identifier: Apache-2.0
// What lies in a bundle's folder, compared with the signed manifest: the chunk list, files that should not be there,
// the programs beside the bundle. The volumes are volumes.hpp's subject, their bytes payload_reader.hpp's.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::bundle {

// The chunk list is NAME-VERSION.chunks: 32 bytes a chunk.
inline constexpr std::string_view kChunksSuffix = ".chunks";
// The list of recovery chunks is NAME-VERSION.recovery: 32 bytes each.
inline constexpr std::string_view kRecoverySuffix = ".recovery";

// The digests of all chunks; throws Digest unless the file is the one whose digest was signed.
std::vector<Digest> read_chunk_list(const std::filesystem::path& path, const Payload& payload);

// The digests of all recovery chunks of a payload that has some; throws alike.
std::vector<Digest> read_recovery_list(const std::filesystem::path& path, const Payload& payload);

// Throws Conflict when the folder holds a list, a volume or a recovery file that the manifest does not name.
void refuse_extra_files(const std::filesystem::path& folder, const Manifest& manifest);

// Throws Digest when a program beside the bundle is not the signed one. One that is missing is no fault: a media desk
// may leave it out.
void check_companions(const std::filesystem::path& folder, const Manifest& manifest);

}  // namespace sealift::bundle
