// SPDX-License-Identifier: Apache-2.0
// Small container images: their documents as registries have them, as a folder of skopeo's, and as items of a bundle.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/tiny_bundle.hpp"

namespace sealift::test {

inline std::string hex_of(const std::string& bytes) {
  return bundle::sha256(bundle::as_bytes(bytes)).hex();
}

struct TinyImage {
  std::string name = "org/app";
  std::string tag = "1.0";
  std::string os = "linux";
  std::string architecture = "amd64";
  std::vector<std::string> layers = {std::string(9000, 'l'), "second"};
  bool docker = false;  // of Docker's kind
  bool absent = false;  // a delta does not carry its layers
  std::string reference = "localhost:5000/org/app@sha256:" + std::string(64, 'a');

  std::string config() const {
    return R"({"architecture":")" + architecture + R"(","os":")" + os +
           R"(","rootfs":{"type":"layers","diff_ids":[]}})";
  }
  std::string media_type() const {
    return std::string(docker ? bundle::kDockerManifestType : bundle::kOciManifestType);
  }
  std::string config_type() const {
    return docker ? "application/vnd.docker.container.image.v1+json" : "application/vnd.oci.image.config.v1+json";
  }
  static std::string descriptor(const std::string& bytes, const std::string& type) {
    return R"({"mediaType":")" + type + R"(","digest":"sha256:)" + hex_of(bytes) + R"(","size":)" +
           std::to_string(bytes.size()) + "}";
  }
  std::string manifest() const {
    std::string list;
    for (const std::string& layer : layers)
      list += (list.empty() ? "" : ",") + descriptor(layer, "application/vnd.oci.image.layer.v1.tar");
    return R"({"schemaVersion":2,"mediaType":")" + media_type() + R"(","config":)" +
           descriptor(config(), config_type()) + R"(,"layers":[)" + list + "]}";
  }
  std::vector<std::string> blobs() const {
    std::vector<std::string> all = {config()};
    all.insert(all.end(), layers.begin(), layers.end());
    return all;
  }
};

// As `skopeo copy … dir:FOLDER` leaves it.
inline void write_skopeo_folder(const std::filesystem::path& folder, const TinyImage& image) {
  write_file(folder / "version", "Directory Transport Version: 1.1\n");
  write_file(folder / "manifest.json", image.manifest());
  for (const std::string& blob : image.blobs()) write_file(folder / hex_of(blob), blob);
}

inline bundle::CarriedImage listed_image(const TinyImage& image) {
  bundle::CarriedImage listed{.name = image.name,
                              .tag = image.tag,
                              .reference = image.reference,
                              .media_type = image.media_type(),
                              .manifest = bundle::sha256(bundle::as_bytes(image.manifest())),
                              .blobs = {}};
  for (const std::string& blob : image.blobs()) listed.blobs.push_back(bundle::sha256(bundle::as_bytes(blob)));
  return listed;
}

// Blobs, each once, and the list of the images.
inline std::vector<TinyItem> image_items(const std::vector<TinyImage>& images) {
  std::map<std::string, TinyItem> blobs;
  bundle::ImageCatalogue catalogue;
  for (const TinyImage& image : images) {
    std::vector<std::string> all = image.blobs();
    all.push_back(image.manifest());
    for (const std::string& blob : all) {
      const std::string path = bundle::image_blob_entry(bundle::sha256(bundle::as_bytes(blob)));
      const bool layer = blob != image.manifest() && blob != image.config();
      blobs.try_emplace(
          path, TinyItem{.path = path, .bytes = blob, .into = {}, .absent = image.absent && layer, .placed = false});
    }
    catalogue.push_back(listed_image(image));
  }
  std::vector<TinyItem> items;
  for (auto& [path, item] : blobs) items.push_back(std::move(item));
  items.push_back({.path = std::string(bundle::kImageCatalogueEntry),
                   .bytes = bundle::write_image_catalogue(catalogue),
                   .into = {},
                   .placed = false});
  return items;
}

// What a catalogue of them is read against, and no more than that.
inline bundle::Manifest manifest_of(const std::vector<TinyImage>& images) {
  bundle::Manifest manifest;
  for (const TinyItem& item : image_items(images)) manifest.entries.push_back(draft_of(item));
  std::sort(manifest.entries.begin(), manifest.entries.end(),
            [](const bundle::Entry& a, const bundle::Entry& b) { return a.path < b.path; });
  return manifest;
}

}  // namespace sealift::test
