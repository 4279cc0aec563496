// SPDX-License-Identifier: Apache-2.0
// What skopeo left on disk -> an image that a lock can pin. A registry's owner chose every byte of it, so all of it is
// bounded before it is read, each digest is computed here, and names on disk are made of digests alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "packager/tables/image.hpp"

namespace sealift::packager {

// Which of a list of platforms is meant, in the words of Go: "linux" alone is known.
struct ImagePlatform {
  std::string architecture;  // "amd64"
};

// For an architecture as `uname -m` says it.
ImagePlatform image_platform(const std::string& arch);

// The manifests for the platform in a list of platforms; nothing when `manifest` is no list. Throws Format.
std::optional<std::vector<bundle::Digest>> listed_manifests(std::string_view manifest, const ImagePlatform& platform,
                                                            const std::string& where);

// The size of the largest blob that a manifest names; 0 of a list. Throws Format.
std::uint64_t largest_blob(std::string_view manifest, const std::string& where);

// An image's manifest as it is in a folder of skopeo's (`dir:`): manifest.json, and each blob under its digest.
struct ImageLayout {
  LockedBlob manifest;
  std::vector<LockedBlob> blobs;  // sorted, each once
};

// Reads the folder, each file once: `digest` reads a blob and says its SHA-256. Throws Format unless it is an image's
// manifest within the bounds, Missing for a blob that is not there, Digest for one that is another, Platform for an
// image of another platform.
using BlobDigest = std::function<bundle::Digest(const std::filesystem::path&)>;
ImageLayout read_image_layout(const std::filesystem::path& folder, const ImagePlatform& platform,
                              const std::string& where, const BlobDigest& digest);

}  // namespace sealift::packager
