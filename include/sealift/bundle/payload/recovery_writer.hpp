// SPDX-License-Identifier: Apache-2.0
// A finished payload -> the files that mend it. The payload is read once more for it, chunk by chunk and checked, since
// a group's pieces lie far apart: nothing that the disk has changed meanwhile gets into recovery data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "sealift/bundle/manifest/manifest.hpp"
#include "sealift/bundle/payload/payload_reader.hpp"

namespace sealift::bundle {

// Writes STEM.rec001, …, each of whole recovery chunks and at most `volume_size` bytes (0: one file), and
// STEM.recovery into `folder`, all durable. `wanted` says groups and parity; what is returned says the rest. `progress`
// gets the bytes of the payload as they are read, from any thread. Throws Usage when a file would hold no recovery
// chunk, Io, Space, Digest. Memory: 128 MiB, and a chunk for each of at most eight threads.
Recovery write_recovery(const PayloadReader& payload, Recovery wanted, const std::filesystem::path& folder,
                        const std::string& stem, std::uint64_t volume_size,
                        const std::function<void(std::uint64_t)>& progress = {});

}  // namespace sealift::bundle
