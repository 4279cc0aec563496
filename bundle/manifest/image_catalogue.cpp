// SPDX-License-Identifier: Apache-2.0
// There is one spelling, as of the catalogue of hubs: a text that is not what its value is written as is refused.
#include "sealift/bundle/manifest/image_catalogue.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "bundle/core/fields_json.hpp"
#include "bundle/core/json.hpp"
#include "bundle/core/text_parts.hpp"

namespace sealift::bundle {

namespace {

constexpr std::uint64_t kImagesFormat = 1;
constexpr std::size_t kMaxImages = 10'000;

bool is_lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

// [a-z0-9]+ with '.', '_', '__' or any number of '-' between.
bool is_name_part(std::string_view part) {
  std::size_t at = 0;
  const auto word = [&] {
    const std::size_t begin = at;
    while (at < part.size() && is_lower_or_digit(part[at])) ++at;
    return at > begin;
  };
  if (!word()) return false;
  while (at < part.size()) {
    if (part[at] == '-') {
      while (at < part.size() && part[at] == '-') ++at;
    } else if (part.substr(at, 2) == "__") {
      at += 2;
    } else if (part[at] == '.' || part[at] == '_') {
      ++at;
    } else {
      return false;
    }
    if (!word()) return false;
  }
  return true;
}

// What a registry's address, a name and a digest have: nothing that needs quoting anywhere.
bool is_reference(std::string_view text) {
  return text.size() <= 500 && std::all_of(text.begin(), text.end(), [](char c) {
           return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z') ||
                  std::string_view("./:@_-[]").find(c) != std::string_view::npos;
         });
}

// Null when it may be written.
const char* fault_of(const CarriedImage& image) {
  if (!is_image_name(image.name)) return "this is not the name of an image";
  if (!is_image_tag(image.tag)) return "this is not the tag of an image";
  if (!is_reference(image.reference)) return "this is not where an image comes from";
  if (image.media_type != kOciManifestType && image.media_type != kDockerManifestType)
    return "this is not the media type of an image's manifest";
  if (image.blobs.empty() || image.blobs.size() > kMaxImageBlobs) return "an image has 1 to 1000 blobs";
  if (std::binary_search(image.blobs.begin(), image.blobs.end(), image.manifest))
    return "an image's blobs lack its manifest";
  return nullptr;
}

void sort_images(ImageCatalogue& images) {
  for (CarriedImage& image : images) {
    std::sort(image.blobs.begin(), image.blobs.end());
    image.blobs.erase(std::unique(image.blobs.begin(), image.blobs.end()), image.blobs.end());
  }
  std::sort(images.begin(), images.end(), [](const CarriedImage& a, const CarriedImage& b) {
    return std::tie(a.name, a.tag) < std::tie(b.name, b.tag);
  });
  const CarriedImage* before = nullptr;
  for (const CarriedImage& image : images) {
    const char* fault = fault_of(image);
    if (fault == nullptr && before != nullptr && before->name == image.name && before->tag == image.tag)
      fault = "two images have one name and tag";
    if (fault != nullptr)
      throw Error(ErrorCode::Usage, {.what = fault,
                                     .where = SafePath::printable(image.name) + ":" + SafePath::printable(image.tag),
                                     .next = "lock the job again"});
    before = &image;
  }
}

// The blob's entry stands for its size.
void require_blob(const Digest& digest, const Manifest& manifest, std::uint64_t most, const std::string& where) {
  const Entry* entry = manifest.find(SafePath::parse(image_blob_entry(digest), where));
  if (entry == nullptr || entry->kind != EntryKind::File || entry->sha256 != digest)
    refuse_json(where, "the manifest has no file that is this blob of an image", digest.hex());
  if (entry->size > most)
    refuse_json(where, "a manifest of an image is larger than 4 MiB", std::to_string(entry->size));
}

CarriedImage parse_image(const Json& json, const Manifest& manifest, const std::string& where) {
  JsonObject object(json, where);
  CarriedImage image{.name = object.string("name", 200),
                     .tag = object.string("tag", 128),
                     .reference = object.string("reference", 500),
                     .media_type = object.string("media_type", 100),
                     .manifest = object.digest("manifest"),
                     .blobs = {}};
  require_blob(image.manifest, manifest, kMaxImageManifest, where);
  for (const Json& item : object.array("blobs", kMaxImageBlobs)) {
    const std::optional<Digest> digest = item.is_string() ? Digest::from_hex(item.get<std::string>()) : std::nullopt;
    if (!digest) refuse_json(where + ".blobs", "this is not a SHA-256");
    require_blob(*digest, manifest, kMaxPayloadSize, where);
    image.blobs.push_back(*digest);
  }
  object.done();
  return image;
}

}  // namespace

bool is_repository_name(std::string_view text) {
  if (text.size() > 200) return false;
  const std::vector<std::string_view> parts = split(text, '/');
  return std::all_of(parts.begin(), parts.end(), is_name_part);
}

bool is_image_name(std::string_view text) {
  const std::string_view first = text.substr(0, text.find('/'));
  return is_repository_name(text) && first != "b" && first != "c" && first != "bundles";
}

bool is_image_tag(std::string_view text) {
  return !text.empty() && text.size() <= 128 && text.front() != '.' && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '-';
         });
}

std::string image_blob_entry(const Digest& digest) {
  return std::string(kImageBlobFolder) + digest.hex();
}

std::string write_image_catalogue(ImageCatalogue images) {
  sort_images(images);
  Json list = Json::array();
  for (const CarriedImage& image : images) {
    Json blobs = Json::array();
    for (const Digest& blob : image.blobs) blobs.push_back(blob.hex());
    list.push_back({{"name", image.name},
                    {"tag", image.tag},
                    {"reference", image.reference},
                    {"media_type", image.media_type},
                    {"manifest", image.manifest.hex()},
                    {"blobs", std::move(blobs)}});
  }
  return write_json({{"format", kImagesFormat}, {"images", std::move(list)}}) + "\n";
}

ImageCatalogue parse_image_catalogue(std::string_view text, const Manifest& manifest, const std::string& where) {
  if (text.size() > kMaxImageCatalogue) refuse_json(where, "it is larger than 64 MiB", std::to_string(text.size()));
  const Json root = parse_json(text, where);
  JsonObject object(root, where);
  if (const std::uint64_t format = object.integer("format"); format != kImagesFormat)
    throw Error(ErrorCode::CannotCheck,
                {.what = "the catalogue of images is of a format that this version does not know",
                 .where = where,
                 .expected = std::to_string(kImagesFormat),
                 .got = std::to_string(format),
                 .next = "use a newer version of this program"});
  ImageCatalogue images;
  for (const Json& json : object.array("images", kMaxImages))
    images.push_back(parse_image(json, manifest, where + ".images"));
  object.done();
  try {
    if (write_image_catalogue(images) != text) refuse_json(where, "it is not sorted, or not in its one spelling");
  } catch (const Error& error) {
    if (error.code() != ErrorCode::Usage) throw;
    refuse_json(where, error.facts().what, error.facts().where);
  }
  return images;
}

}  // namespace sealift::bundle
