// SPDX-License-Identifier: Apache-2.0
// Layers that images share are carried once; see image_files.hpp.
#include "packager/images/image_files.hpp"

#include <set>

#include "sealift/bundle/manifest/image_catalogue.hpp"

namespace sealift::packager {

std::vector<Content> contents_of(const std::vector<LockedImage>& images) {
  if (images.empty()) return {};
  std::vector<Content> contents;
  std::set<bundle::Digest> seen;
  bundle::ImageCatalogue catalogue;
  for (const LockedImage& image : images) {
    bundle::CarriedImage carried{.name = image.name,
                                 .tag = image.tag,
                                 .reference = image.reference,
                                 .media_type = image.manifest.media_type,
                                 .manifest = image.manifest.sha256,
                                 .blobs = {}};
    const auto add = [&](const LockedBlob& blob) {
      if (!seen.insert(blob.sha256).second) return;
      contents.push_back({.name = image.name + ":" + image.tag + ", blob " + blob.sha256.hex(),
                          .owner = "the image " + image.name + ":" + image.tag,
                          .entry = bundle::image_blob_entry(blob.sha256),
                          .into = {},
                          .size = blob.size,
                          .sha256 = blob.sha256,
                          .origin = FromLock{}});
    };
    add(image.manifest);
    for (const LockedBlob& blob : image.blobs) {
      add(blob);
      carried.blobs.push_back(blob.sha256);
    }
    catalogue.push_back(std::move(carried));
  }
  const std::string text = bundle::write_image_catalogue(std::move(catalogue));
  contents.push_back({.name = "the list of the job's images",
                      .owner = "the list of the job's images",
                      .entry = std::string(bundle::kImageCatalogueEntry),
                      .into = {},
                      .size = text.size(),
                      .sha256 = bundle::sha256(bundle::as_bytes(text)),
                      .origin = FromText{text}});
  return contents;
}

}  // namespace sealift::packager
