// SPDX-License-Identifier: Apache-2.0
// See image_layout.hpp. Source of the formats: the OCI image specification 1.1, and Docker's manifest version 2,
// schema 2, which says the same in other media types.
#include "packager/images/image_layout.hpp"

#include <algorithm>
#include <map>

#include "bundle/core/json.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/manifest/image_catalogue.hpp"

namespace sealift::packager {

namespace fs = std::filesystem;
using bundle::Digest;
using bundle::Error;
using bundle::ErrorCode;
using bundle::Json;

namespace {

constexpr std::uint64_t kMaxImageConfig = std::uint64_t{8} << 20;
constexpr std::string_view kOciIndex = "application/vnd.oci.image.index.v1+json",
                           kDockerList = "application/vnd.docker.distribution.manifest.list.v2+json",
                           kOciConfig = "application/vnd.oci.image.config.v1+json",
                           kDockerConfig = "application/vnd.docker.container.image.v1+json";

[[noreturn]] void refuse_image(const std::string& where, const std::string& what, const std::string& got = {}) {
  throw Error(ErrorCode::Format, {.what = "an image cannot be carried: " + what,
                                  .where = where,
                                  .got = bundle::SafePath::printable(got.substr(0, 200)),
                                  .next = "is the source an image for containers, from a registry that works?"});
}

Json parsed_json(std::string_view text, const std::string& where) {
  try {
    return parse_strict_json(text, {.max_depth = 32, .max_values = 200'000, .integers_only = false});
  } catch (const StrictJsonError& error) {
    refuse_image(where, error.what(), error.got());
  }
}

// Empty when it is not there.
std::string word_of(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

const Json& list_of(const Json& object, const char* key, const std::string& where) {
  static const Json none = Json::array();
  const auto found = object.find(key);
  if (found == object.end()) return none;
  if (!found->is_array()) refuse_image(where, std::string("its '") + key + "' is no list");
  return *found;
}

LockedBlob descriptor(const Json& json, const std::string& where) {
  const std::string digest = word_of(json, "digest");
  const std::optional<Digest> sha256 =
      digest.starts_with("sha256:") ? Digest::from_hex(std::string_view(digest).substr(7)) : std::nullopt;
  if (!sha256) refuse_image(where, "a blob is not named by its SHA-256", digest);
  const auto size = json.find("size");
  if (size == json.end() || !size->is_number_unsigned() || size->get<std::uint64_t>() > bundle::kMaxPayloadSize)
    refuse_image(where, "a blob has no size", digest);
  const std::string type = word_of(json, "mediaType");
  if (type.empty() || type.size() > 200) refuse_image(where, "a blob has no media type", digest);
  return {.sha256 = *sha256, .size = size->get<std::uint64_t>(), .media_type = type};
}

// A manifest may leave out what it is; its configuration says it then.
std::string type_of(const Json& manifest, const LockedBlob& config, const std::string& where) {
  std::string type = word_of(manifest, "mediaType");
  if (type.empty()) type = config.media_type == kDockerConfig ? bundle::kDockerManifestType : bundle::kOciManifestType;
  if (type != bundle::kOciManifestType && type != bundle::kDockerManifestType)
    refuse_image(where, "this is no manifest of an image", type);
  return type;
}

Json parse_manifest(std::string_view text, const std::string& where) {
  if (text.size() > bundle::kMaxImageManifest)
    refuse_image(where, "its manifest is larger than 4 MiB", bundle::human_size(text.size()));
  Json manifest = parsed_json(text, where);
  const auto version = manifest.is_object() ? manifest.find("schemaVersion") : manifest.end();
  if (!manifest.is_object() || version == manifest.end() || *version != 2)
    refuse_image(where, "its manifest is not of schema version 2", std::string(text.substr(0, 80)));
  return manifest;
}

// A plain file of this very size and digest, whatever else lies there.
void check_blob(const fs::path& file, const LockedBlob& blob, const std::string& where, const BlobDigest& digest) {
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(file, error)))
    throw Error(ErrorCode::Missing, {.what = "a blob of an image is not there",
                                     .where = where,
                                     .expected = "sha256:" + blob.sha256.hex(),
                                     .next = "fetch the image again; its registry may have lost it"});
  const std::uint64_t size = fs::file_size(file, error);
  const std::string got = error               ? error.message()
                          : size != blob.size ? std::to_string(size) + " bytes"
                                              : "sha256:" + digest(file).hex();
  if (got == "sha256:" + blob.sha256.hex()) return;
  throw Error(ErrorCode::Digest, {.what = "a blob of an image is not what its manifest says",
                                  .where = where,
                                  .expected = std::to_string(blob.size) + " bytes, sha256:" + blob.sha256.hex(),
                                  .got = got,
                                  .next = "fetch the image again; do not use this registry if it stays so"});
}

// Only images for containers say a platform.
void check_platform(const fs::path& folder, const LockedBlob& config, const ImagePlatform& platform,
                    const std::string& where) {
  if (config.media_type != kOciConfig && config.media_type != kDockerConfig) return;
  if (config.size > kMaxImageConfig)
    refuse_image(where, "its configuration is larger than 8 MiB", bundle::human_size(config.size));
  const Json json = parsed_json(bundle::read_text(folder / config.sha256.hex(), kMaxImageConfig), where);
  const std::string os = word_of(json, "os"), architecture = word_of(json, "architecture");
  if (os == "linux" && architecture == platform.architecture) return;
  throw Error(ErrorCode::Platform, {.what = "an image is for another platform than the job's target",
                                    .where = where,
                                    .expected = "linux/" + platform.architecture,
                                    .got = bundle::SafePath::printable(os + "/" + architecture),
                                    .next = "name the image for the target's platform"});
}

}  // namespace

ImagePlatform image_platform(const std::string& arch) {
  return {.architecture = arch == "x86_64" ? "amd64" : arch == "aarch64" ? "arm64" : arch};
}

std::optional<std::vector<Digest>> listed_manifests(std::string_view text, const ImagePlatform& platform,
                                                    const std::string& where) {
  const Json manifest = parse_manifest(text, where);
  const std::string type = word_of(manifest, "mediaType");
  if (type != kOciIndex && type != kDockerList && !(type.empty() && manifest.contains("manifests")))
    return std::nullopt;
  std::vector<Digest> found;
  for (const Json& item : list_of(manifest, "manifests", where)) {
    const LockedBlob one = descriptor(item, where);
    const auto of = item.find("platform");
    if (of != item.end() && word_of(*of, "os") == "linux" && word_of(*of, "architecture") == platform.architecture)
      found.push_back(one.sha256);
  }
  if (found.empty())
    throw Error(ErrorCode::Platform, {.what = "an image is not there for the job's target",
                                      .where = where,
                                      .expected = "linux/" + platform.architecture,
                                      .next = "name an image for the target's platform"});
  return found;
}

std::uint64_t largest_blob(std::string_view text, const std::string& where) {
  const Json manifest = parse_manifest(text, where);
  std::uint64_t largest = 0;
  if (const auto config = manifest.find("config"); config != manifest.end()) largest = descriptor(*config, where).size;
  const Json& layers = list_of(manifest, "layers", where);
  if (layers.size() > bundle::kMaxImageBlobs) refuse_image(where, "it has more than 1000 layers");
  for (const Json& layer : layers) largest = std::max(largest, descriptor(layer, where).size);
  return largest;
}

ImageLayout read_image_layout(const fs::path& folder, const ImagePlatform& platform, const std::string& where,
                              const BlobDigest& digest) {
  const std::string text = bundle::read_text(folder / "manifest.json", bundle::kMaxImageManifest);
  const Json manifest = parse_manifest(text, where);
  const auto config = manifest.find("config");
  if (config == manifest.end()) refuse_image(where, "its manifest has no configuration");
  const LockedBlob configuration = descriptor(*config, where);
  std::map<Digest, LockedBlob> blobs{{configuration.sha256, configuration}};
  for (const Json& layer : list_of(manifest, "layers", where)) {
    const LockedBlob blob = descriptor(layer, where);
    if (const auto [twin, fresh] = blobs.emplace(blob.sha256, blob); !fresh && twin->second.size != blob.size)
      refuse_image(where, "one blob has two sizes", "sha256:" + blob.sha256.hex());
    if (blobs.size() > bundle::kMaxImageBlobs) refuse_image(where, "it has more than 1000 blobs");
  }
  ImageLayout layout{.manifest = {.sha256 = bundle::sha256(bundle::as_bytes(text)),
                                  .size = text.size(),
                                  .media_type = type_of(manifest, configuration, where)},
                     .blobs = {}};
  for (const auto& [name, blob] : blobs) {
    if (name == layout.manifest.sha256) refuse_image(where, "its manifest names itself as a blob");
    check_blob(folder / name.hex(), blob, where, digest);
    layout.blobs.push_back(blob);
  }
  check_platform(folder, configuration, platform, where);
  return layout;
}

}  // namespace sealift::packager
