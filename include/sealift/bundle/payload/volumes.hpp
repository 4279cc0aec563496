// SPDX-License-Identifier: Apache-2.0
// Where a payload's volumes are looked for: in several folders, in any order, or on a disc that somebody has yet to
// insert. Plain values, filled in by a tool and used by readers of the payload.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::bundle {

// Called for a volume that is missing, is cut short, or holds a chunk that differs from what was signed. Returns a
// further folder to look in, an empty path to look again in the same places, or nothing to give up: then `fault` is
// thrown.
using VolumeAsker = std::function<std::optional<std::filesystem::path>(const Volume& volume, const Error& fault)>;

// What is done about a chunk that no volume has right, where the bundle has recovery data.
struct Mending {
  // Mend it in memory while it is read, as far as that costs little: payload/chunk_mender.hpp has the limits.
  bool while_reading = false;
  // What messages say to run instead; empty: `mend`, in general words.
  std::string command{};
};

// Of one volume: what was not right in it when it was read, and came from recovery data or from another copy. No
// chunks: only its size is wrong.
struct MendedVolume {
  std::string name;
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;

  friend bool operator==(const MendedVolume&, const MendedVolume&) = default;
};

struct VolumeSources {
  std::vector<std::filesystem::path> folders;  // looked at in this order
  VolumeAsker ask = {};                        // empty: every volume must be there from the beginning
  bool read_once = false;                      // read past the system's page cache where that works
  Mending mending = {};
};

}  // namespace sealift::bundle
