// SPDX-License-Identifier: Apache-2.0
// A tag moves from bundle to bundle, as a hub's branch does; a digest never means two things.
#include "offline_repo/catalogue/images.hpp"

#include <optional>

#include "offline_repo/catalogue/not_served.hpp"

namespace sealift::offline_repo {

namespace {

using InBundle = std::shared_ptr<const bundle::VerifiedBundle>;

// Nothing when the bundle does not carry it, or has it damaged.
std::optional<ServedFile> blob_of(const bundle::Digest& digest, const InBundle& in,
                                  const std::set<std::string>& rotten) {
  const std::string path = bundle::image_blob_entry(digest);
  const bundle::Entry& entry = *in->manifest().find(bundle::SafePath::parse(path, ""));  // the list's reader found it
  if (entry.absent || rotten.contains(path)) return std::nullopt;
  return served_file(in, entry, "a blob of an image");
}

// False, and nothing is added, when a part of it is missing.
bool add_image(ImageRepository& repository, const bundle::CarriedImage& image, const InBundle& in,
               const std::set<std::string>& rotten) {
  const std::optional<ServedFile> manifest = blob_of(image.manifest, in, rotten);
  if (!manifest) return false;
  ServedManifest served{.media_type = image.media_type, .file = *manifest};
  std::vector<ServedFile> blobs;
  for (const bundle::Digest& digest : image.blobs) {
    std::optional<ServedFile> blob = blob_of(digest, in, rotten);
    if (!blob) return false;
    served.image_size += blob->size;
    blobs.push_back(*std::move(blob));
  }
  for (ServedFile& blob : blobs) repository.blobs.try_emplace(blob.sha256.hex(), std::move(blob));
  repository.manifests.try_emplace(image.manifest.hex(), std::move(served));
  const std::string& created = in->manifest().created;
  NamedImage& named = repository.tags.try_emplace(image.tag, NamedImage{image.manifest.hex(), created}).first->second;
  if (named.created < created) named = {image.manifest.hex(), created};
  return true;
}

}  // namespace

bundle::ImageCatalogue read_image_list(const bundle::VerifiedBundle& in) {
  const bundle::Entry* entry = in.manifest().find(bundle::SafePath::parse(bundle::kImageCatalogueEntry, ""));
  if (entry == nullptr || entry->absent) return {};
  const std::string where = in.manifest().stem() + ":" + entry->path.text();
  if (entry->size > bundle::kMaxImageCatalogue)
    throw bundle::Error(bundle::ErrorCode::Format, {.what = "the catalogue of images is larger than 64 MiB",
                                                    .where = where,
                                                    .got = std::to_string(entry->size) + " bytes"});
  std::string text;
  in.stream(*entry, [&](bundle::ByteView piece) { text += bundle::as_text(piece); });
  return bundle::parse_image_catalogue(text, in.manifest(), where);
}

std::vector<InBoth> add_images(ImageRepositories& repositories, const bundle::ImageCatalogue& listed,
                               const InBundle& in, const std::set<std::string>& rotten) {
  std::vector<InBoth> lines;
  for (const bundle::CarriedImage& image : listed)
    if (!add_image(repositories[image.name], image, in, rotten))
      lines.push_back(image_in_part(in->manifest().stem(), image.name + ":" + image.tag));
  std::erase_if(repositories, [](const auto& one) { return one.second.manifests.empty(); });
  return lines;
}

}  // namespace sealift::offline_repo
