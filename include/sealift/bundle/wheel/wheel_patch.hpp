// SPDX-License-Identifier: Apache-2.0
// Makes what PatchedWheel reads: a wheel without what another wheel, that the target has, brings already. A file that
// has not changed is left out, one that has becomes a zstd patch against its older self where that is smaller.
// Beside the reader, so that what one writes and the other reads has one home; format: FORMAT.md, "Patches".
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/digest.hpp"

namespace sealift::bundle {

// A wheel to make a patch of, or from.
struct PublishedWheel {
  ByteSource& source;
  std::string file_name;
  std::set<Digest> allowed_startup_files = {};
};

// What was made: its size in bytes, its SHA-256, and how many files it leaves out or patches.
struct WheelPatch {
  std::uint64_t size = 0;
  Digest sha256;
  std::size_t same = 0;
  std::size_t patched = 0;
};

// Writes the patch of `wheel` on `base` to the new file `out`; nothing, and no file, when it would be larger than 90 %
// of the wheel. Each frame is decoded again and compared. `scratch` is an existing folder for one file of each wheel at
// a time. `progress` gets the archive's bytes that are done. Throws Format or Digest when one of the wheels is not
// whole. Memory: the patch of one file, zstd's tables, and mapped files. Equal wheels give equal bytes with one version
// of zstd.
std::optional<WheelPatch> make_wheel_patch(const PublishedWheel& wheel, const PublishedWheel& base,
                                           const std::filesystem::path& scratch, const std::filesystem::path& out,
                                           const std::function<void(std::uint64_t)>& progress = {});

}  // namespace sealift::bundle
