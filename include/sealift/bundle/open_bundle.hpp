// SPDX-License-Identifier: Apache-2.0
// The first step to the gate: a folder that claims to hold a bundle -> its one seal, read once. Nothing in an
// OpenBundle has been checked; verify, of verified_bundle.hpp, is all that one can do with it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/trust/seal.hpp"
#include "sealift/bundle/payload/volumes.hpp"

namespace sealift::bundle {

inline constexpr std::string_view kSealSuffix = ".seal";

// A folder that claims to hold one bundle, and its seal. Nothing in it has been checked.
struct OpenBundle {
  std::filesystem::path folder;
  std::filesystem::path seal_path;
  Seal seal;                                             // the medium is not asked for it again
  std::vector<std::filesystem::path> more_folders = {};  // where volumes may lie as well
  VolumeAsker ask = {};                                  // for a volume that is in none of them
  bool read_once = false;                                // no byte of a volume will be wanted twice
};

namespace detail {

inline OpenBundle find_seal(const std::filesystem::path& folder_or_seal) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_regular_file(folder_or_seal, error) && folder_or_seal.extension() == kSealSuffix)
    return {.folder = folder_or_seal.has_parent_path() ? folder_or_seal.parent_path() : ".",
            .seal_path = folder_or_seal,
            .seal = {}};
  OpenBundle found{.folder = folder_or_seal, .seal_path = {}, .seal = {}};
  fs::directory_iterator files(folder_or_seal, error);
  if (error) throw_errno("a bundle's folder cannot be opened", folder_or_seal, error.value());
  for (const fs::directory_entry& file : files) {
    if (file.path().extension() != kSealSuffix) continue;
    if (!found.seal_path.empty())
      throw Error(ErrorCode::Conflict,
                  {.what = "the folder holds more than one seal",
                   .where = folder_or_seal.string(),
                   .got = found.seal_path.filename().string() + " and " + file.path().filename().string(),
                   .next = "name the seal file instead of the folder"});
    found.seal_path = file.path();
  }
  if (found.seal_path.empty())
    throw Error(ErrorCode::Missing, {.what = "there is no seal here",
                                     .where = folder_or_seal.string(),
                                     .expected = "a file named NAME-VERSION.seal",
                                     .next = "name the bundle's folder"});
  return found;
}

}  // namespace detail

// Finds the one seal in `folder` (or takes the seal file itself) and reads it; throws Missing, Conflict or Format.
inline OpenBundle open(const std::filesystem::path& folder_or_seal) {
  OpenBundle opened = detail::find_seal(folder_or_seal);
  opened.seal = parse_seal(read_text(opened.seal_path, kMaxSealSize), opened.seal_path.string());
  return opened;
}

}  // namespace sealift::bundle
