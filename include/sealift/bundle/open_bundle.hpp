// SPDX-License-Identifier: Apache-2.0
// The first step to the gate: a folder that claims to hold a bundle -> its one seal, read once. Nothing in an
// OpenBundle has been checked; the only thing to do with it is verify(), of verified_bundle.hpp.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "sealift/bundle/payload/volumes.hpp"
#include "sealift/bundle/trust/seal.hpp"

namespace sealift::bundle {

inline constexpr std::string_view kSealSuffix = ".seal";

// A folder that claims to hold one bundle, and its seal. Nothing in it has been checked.
struct OpenBundle {
  std::filesystem::path folder;
  std::filesystem::path seal_path;
  Seal seal;                                             // the medium is not asked for it again
  std::vector<std::filesystem::path> more_folders = {};  // further places to look for volumes
  VolumeAsker ask = {};                                  // for a volume that is in none of them
  bool read_once = false;                                // no byte of a volume will be wanted twice
  Mending mending = {};                                  // of chunks that no volume has right
};

// Finds the one seal in the folder (or takes the seal file itself) and reads it; throws Missing, Conflict or Format.
OpenBundle open(const std::filesystem::path& folder_or_seal);

}  // namespace sealift::bundle
