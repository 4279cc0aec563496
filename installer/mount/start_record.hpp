// SPDX-License-Identifier: Apache-2.0
// Which chunks of an image a start reads, and in which order: kept in a small file of the caller's, so that the next
// start has them fetched while Python still looks for its first module. A hint: nothing depends on it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "sealift/bundle/core/digest.hpp"

namespace sealift::installer {

// The chunks, below `count`, that `file` names for the image with this digest, each once; none where it is missing, of
// another image or not whole.
std::vector<std::uint64_t> read_start_record(const std::filesystem::path& file, const bundle::Digest& image,
                                             std::uint64_t count);

// Replaces the file whole. Throws Io, Space.
void write_start_record(const std::filesystem::path& file, const bundle::Digest& image,
                        const std::vector<std::uint64_t>& chunks);

}  // namespace sealift::installer
