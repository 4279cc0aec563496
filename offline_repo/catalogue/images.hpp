// SPDX-License-Identifier: Apache-2.0
// What the verified bundles offer to clients that pull container images: repositories, tags, manifests and blobs. It
// comes from each bundle's signed list of images and from nothing else; what an image says of itself is never parsed.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "offline_repo/catalogue/in_both.hpp"
#include "offline_repo/catalogue/served_file.hpp"
#include "sealift/bundle/manifest/image_catalogue.hpp"

namespace sealift::offline_repo {

struct ServedManifest {
  std::string media_type;
  ServedFile file;
  std::uint64_t image_size = 0;  // bytes of its blobs
};

// What a tag stands for, as the newest bundle with this name says.
struct NamedImage {
  std::string digest;   // a key of `manifests`
  std::string created;  // of that bundle: RFC 3339
};

struct ImageRepository {
  std::map<std::string, NamedImage, std::less<>> tags;
  std::map<std::string, ServedManifest, std::less<>> manifests;  // by SHA-256 in hexadecimal
  std::map<std::string, ServedFile, std::less<>> blobs;          // likewise
};

using ImageRepositories = std::map<std::string, ImageRepository, std::less<>>;  // by name

// What the bundle's signed list says, nothing where it has none. Throws Format when its list is malformed.
bundle::ImageCatalogue read_image_list(const bundle::VerifiedBundle& in);

// Adds the images of `in` whose every blob it can serve. Returns a line for people on each other one. Throws
// CannotCheck as served_file does.
std::vector<InBoth> add_images(ImageRepositories& repositories, const bundle::ImageCatalogue& listed,
                               const std::shared_ptr<const bundle::VerifiedBundle>& in,
                               const std::set<std::string>& rotten = {});

}  // namespace sealift::offline_repo
