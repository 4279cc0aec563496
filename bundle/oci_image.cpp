// SPDX-License-Identifier: Apache-2.0
// Strict JSON like everything else here, so the same entries give the same bytes.
#include "bundle/oci_image.hpp"

#include <utility>

#include "bundle/core/json.hpp"
#include "sealift/bundle/core/digest.hpp"

namespace sealift::bundle {
namespace {

std::string digest_text(std::string_view text) {
  return "sha256:" + sha256(as_bytes(text)).hex();
}

}  // namespace

std::string oci_image_text(const Manifest& manifest) {
  Json layers = Json::array();
  for (const Entry& entry : manifest.entries) {
    if (entry.absent) continue;
    layers.push_back({{"mediaType", "application/vnd.sealift." + name_of(entry.kind) + ".v1" +
                                        (entry.encoding == Encoding::Identity ? "" : "+" + name_of(entry.encoding))},
                      {"digest", "sha256:" + entry.stored_sha256.hex()},
                      {"size", entry.stored_size},
                      {"annotations", {{"org.opencontainers.image.title", entry.path.text()}}}});
  }
  const Json empty = {{"mediaType", "application/vnd.oci.empty.v1+json"},
                      {"digest", digest_text(kOciConfigText)},
                      {"size", kOciConfigText.size()}};
  if (layers.empty()) layers.push_back(empty);
  return write_json({{"schemaVersion", 2},
                     {"mediaType", "application/vnd.oci.image.manifest.v1+json"},
                     {"artifactType", "application/vnd.sealift.bundle.v1"},
                     {"config", empty},
                     {"layers", std::move(layers)}});
}

std::string oci_index_text(const std::string& image, const std::string& name) {
  return write_json({{"schemaVersion", 2},
                     {"mediaType", "application/vnd.oci.image.index.v1+json"},
                     {"manifests",
                      {{{"mediaType", "application/vnd.oci.image.manifest.v1+json"},
                        {"digest", digest_text(image)},
                        {"size", image.size()},
                        {"annotations", {{"org.opencontainers.image.ref.name", name}}}}}}});
}

}  // namespace sealift::bundle
