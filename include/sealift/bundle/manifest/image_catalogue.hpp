// SPDX-License-Identifier: Apache-2.0
// Which container images a bundle carries: their names, tags and digests, and the blobs that each consists of. The
// packager writes it as one signed entry; sealift-repo answers pulls by it, `sealift-install export` writes an
// image layout by it. Neither of them parses what the images say of themselves.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::bundle {

inline constexpr std::string_view kImageCatalogueEntry = "catalogue/images.json";  // its path in the bundle
inline constexpr std::string_view kImageBlobFolder = "images/blobs/sha256/";  // a blob's entry: this and its SHA-256
inline constexpr std::uint64_t kMaxImageCatalogue = std::uint64_t{64} << 20;  // bytes, as the seal's
inline constexpr std::uint64_t kMaxImageManifest = std::uint64_t{4} << 20;    // bytes; registries take no larger one
inline constexpr std::size_t kMaxImageBlobs = 1000;                           // of one image

inline constexpr std::string_view kOciManifestType = "application/vnd.oci.image.manifest.v1+json";
inline constexpr std::string_view kDockerManifestType = "application/vnd.docker.distribution.manifest.v2+json";

// One image for one platform. Every blob, the manifest too, is an entry of the kind File, stored as it is.
struct CarriedImage {
  std::string name;        // of its repository: "org/app"
  std::string tag;         // "1.0"
  std::string reference;   // where it came from, pinned: "HOST/org/app@sha256:…"; empty: from a file of the packer
  std::string media_type;  // of its manifest: one of the two above
  Digest manifest;
  std::vector<Digest> blobs;  // configuration and layers; sorted, each once

  bool operator==(const CarriedImage&) const = default;
};

using ImageCatalogue = std::vector<CarriedImage>;  // sorted by name and tag, each once

// Whether the text is the name of a repository by the OCI distribution specification, at most 200 bytes, and none of
// the names that sealift-repo keeps for others: names that begin with "b", "c" or "bundles" as first part.
bool is_image_name(std::string_view text);
// The same rule without kept names.
bool is_repository_name(std::string_view text);
// Letters, digits, '_', '.', '-', first no '.' or '-', at most 128 bytes.
bool is_image_tag(std::string_view text);

// The path of a blob's entry.
std::string image_blob_entry(const Digest& digest);

// One line of JSON. Sorts everything. Throws Usage when an image stands twice, or for a malformed name, tag or type.
std::string write_image_catalogue(ImageCatalogue images);

// Throws Format for anything that write_image_catalogue does not write, above all for a blob that is not, under this
// digest, an entry of `manifest` of the kind File.
ImageCatalogue parse_image_catalogue(std::string_view text, const Manifest& manifest, const std::string& where);

}  // namespace sealift::bundle
