// SPDX-License-Identifier: Apache-2.0
// The words that stand for the values of a manifest's enums, in the manifest and in the records that repeat them.
#pragma once

#include <string_view>
#include <utility>

#include "bundle/core/fields_json.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::bundle {

inline constexpr std::pair<EntryKind, std::string_view> kKindNames[] = {{EntryKind::Wheel, "wheel"},
                                                                        {EntryKind::Tree, "tree"},
                                                                        {EntryKind::File, "file"},
                                                                        {EntryKind::Squashfs, "squashfs"}};
inline constexpr std::pair<Encoding, std::string_view> kEncodingNames[] = {
    {Encoding::Identity, "identity"}, {Encoding::Zstd, "zstd"}, {Encoding::Patch, "patch"}};
inline constexpr std::pair<WheelBuild, std::string_view> kBuildNames[] = {{WheelBuild::Sandboxed, "sandboxed"},
                                                                          {WheelBuild::Unsandboxed, "unsandboxed"}};

}  // namespace sealift::bundle
