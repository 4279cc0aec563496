// SPDX-License-Identifier: Apache-2.0
// See oci_routes.hpp. Nothing but names, tags and digests of the catalogue is ever found, and a blob is given only to
// who names a repository that has it.
#include "offline_repo/routes/oci_routes.hpp"

#include <algorithm>

#include "offline_repo/protocols/index_pages.hpp"
#include "offline_repo/protocols/oci.hpp"
#include "offline_repo/routes/answers.hpp"

namespace sealift::offline_repo {

namespace {

constexpr char kOciManifest[] = "application/vnd.oci.image.manifest.v1+json";
constexpr char kOciIndexType[] = "application/vnd.oci.image.index.v1+json";

Response named_by_digest(Response response, const std::string& hex, std::string_view type = {}) {
  for (auto& [name, value] : response.headers)
    if (!type.empty() && name == "Content-Type" && response.status < 300) value = type;
  response.headers.emplace_back("Docker-Content-Digest", "sha256:" + hex);
  return response;
}

// What every answer about a repository needs, of images or of a bundle.
struct Found {
  const ImageRepository* images = nullptr;
  const std::map<std::string, std::shared_ptr<BundleArtifact>, std::less<>>* artifacts = nullptr;

  explicit operator bool() const { return images != nullptr || artifacts != nullptr; }
};

Found find_repository(const Catalogue& catalogue, const std::string& name) {
  if (const auto images = catalogue.images.find(name); images != catalogue.images.end())
    return {.images = &images->second};
  if (const auto artifacts = catalogue.artifacts.find(name); artifacts != catalogue.artifacts.end())
    return {.artifacts = &artifacts->second};
  return {};
}

// With the header that leads to the rest, where a client wants less than all.
Response list_answer(const Asked& asked, const std::vector<std::string>& all, const std::string& address,
                     const auto& json_of_items) {
  const std::string n = form_value(asked.target.query, "n");
  const OciPage page = page_of_list(all, n, form_value(asked.target.query, "last"));
  Response response = document_answer(asked.request, json_of_items(page.items), kJsonType);
  if (page.more && !page.items.empty())
    response.headers.emplace_back("Link", "<" + asked.request.registry + address + "?n=" + url_escaped(n) +
                                              "&last=" + url_escaped(page.items.back()) + ">; rel=\"next\"");
  return response;
}

Response image_manifest(const ImageRepository& images, const Request& request, const std::string& reference) {
  std::optional<std::string> hex = digest_of_reference(reference);
  const bool by_digest = hex.has_value();
  if (!by_digest)
    if (const auto tag = images.tags.find(reference); tag != images.tags.end()) hex = tag->second.digest;
  const auto found = hex ? images.manifests.find(*hex) : images.manifests.end();
  if (found == images.manifests.end())
    return registry_error(404, "MANIFEST_UNKNOWN", "no bundle here carries this image");
  return named_by_digest(file_answer(request, found->second.file, by_digest ? kFileCaching : kPageCaching), *hex,
                         found->second.media_type);
}

// 429 and not 503: that is what containers' clients wait for by themselves, as long as the header says.
Response still_reading(const BundleArtifact& artifact) {
  if (const std::string fault = artifact.fault(); !fault.empty())
    return registry_error(500, "UNKNOWN", "the bundle cannot be read whole here: " + fault.substr(0, fault.find('\n')));
  Response response = registry_error(429, "TOOMANYREQUESTS", "the bundle's volumes are being read for their digests");
  response.headers.emplace_back("Retry-After", std::to_string(artifact.seconds_to_read()));
  return response;
}

// By version, or by the digest of any version that was read.
Response artifact_manifest(const Found& found, const Request& request, const std::string& reference) {
  const std::optional<std::string> hex = digest_of_reference(reference);
  const BundleArtifact* reading = nullptr;
  for (const auto& [version, artifact] : *found.artifacts) {
    if (!hex && version != reference) continue;
    const std::shared_ptr<const BundleArtifact::Parts> parts = artifact->parts();
    if (!parts && !hex) return still_reading(*artifact);
    if (!parts && artifact->fault().empty()) reading = artifact.get();
    if (!parts || (hex && parts->digest.hex() != *hex)) continue;
    return named_by_digest(
        shared_answer(request, parts->manifest, parts->digest, kOciManifest, hex ? kFileCaching : kPageCaching),
        parts->digest.hex());
  }
  return reading != nullptr ? still_reading(*reading)
                            : registry_error(404, "MANIFEST_UNKNOWN", "no such version of the bundle is here");
}

Response no_blob() {
  return registry_error(404, "BLOB_UNKNOWN", "no bundle here carries this blob in this repository");
}

Response artifact_blob(const Found& found, const Request& request, const std::string& hex) {
  const BundleArtifact* reading = nullptr;
  for (const auto& [version, artifact] : *found.artifacts) {
    const std::shared_ptr<const BundleArtifact::Parts> parts = artifact->parts();
    if (!parts && artifact->fault().empty()) reading = artifact.get();
    if (!parts) continue;
    if (const auto volume = parts->volumes.find(hex); volume != parts->volumes.end())
      return named_by_digest(file_answer(request, volume->second, kFileCaching), hex);
    if (const auto text = parts->texts.find(hex); text != parts->texts.end())
      return named_by_digest(shared_answer(request, text->second, *bundle::Digest::from_hex(hex),
                                           "application/octet-stream", kFileCaching),
                             hex);
  }
  return reading != nullptr ? still_reading(*reading) : no_blob();
}

// What `answer` makes of the repository IMAGE.
template <class Answer>
Response of_repository(const Asked& asked, const Answer& answer) {
  const Found found = find_repository(asked.catalogue, asked.name("IMAGE"));
  return found ? answer(found) : registry_error(404, "NAME_UNKNOWN", "no bundle here carries images of this name");
}

}  // namespace

bool is_registry_target(std::string_view target) {
  return target == "/v2" || target.starts_with("/v2/") || target.find("/v2/") != target.npos;
}

Response registry_error(unsigned status, std::string_view code, const std::string& why) {
  return {.status = status, .headers = {{"Content-Type", kJsonType}}, .body = oci_error_json(code, why)};
}

Response registry_read_only() {
  Response response = registry_error(405, "UNSUPPORTED", "this registry is read only: GET and HEAD");
  response.headers.emplace_back("Allow", "GET, HEAD");
  return response;
}

Response no_registry_route(const Asked&) {
  return registry_error(404, "UNSUPPORTED", "a registry has no such route");
}

Response registry_base(const Asked& asked) {
  return document_answer(asked.request, "{}", kJsonType);
}

Response registry_catalog(const Asked& asked) {
  std::vector<std::string> names;
  for (const auto& [name, artifacts] : asked.catalogue.artifacts) names.push_back(name);
  for (const auto& [name, images] : asked.catalogue.images) names.push_back(name);
  std::sort(names.begin(), names.end());
  return list_answer(asked, names, "/_catalog", oci_catalog_json);
}

Response registry_tags(const Asked& asked) {
  return of_repository(asked, [&](const Found& found) {
    const std::string name = asked.name("IMAGE");
    std::vector<std::string> tags;
    if (found.images != nullptr)
      for (const auto& [tag, image] : found.images->tags) tags.push_back(tag);
    else
      for (const auto& [version, artifact] : *found.artifacts) tags.push_back(version);
    return list_answer(asked, tags, "/" + name + "/tags/list",
                       [&](const std::vector<std::string>& items) { return oci_tags_json(name, items); });
  });
}

Response registry_manifest(const Asked& asked) {
  return of_repository(asked, [&](const Found& found) {
    const std::string reference = asked.name("REFERENCE");
    return found.images != nullptr ? image_manifest(*found.images, asked.request, reference)
                                   : artifact_manifest(found, asked.request, reference);
  });
}

Response registry_blob(const Asked& asked) {
  return of_repository(asked, [&](const Found& found) {
    const std::optional<std::string> hex = digest_of_reference(asked.name("DIGEST"));
    if (!hex) return registry_error(400, "DIGEST_INVALID", "a blob is asked for by sha256: and 64 hexadecimal digits");
    if (found.artifacts != nullptr) return artifact_blob(found, asked.request, *hex);
    const auto blob = found.images->blobs.find(*hex);
    return blob == found.images->blobs.end()
               ? no_blob()
               : named_by_digest(file_answer(asked.request, blob->second, kFileCaching), *hex);
  });
}

Response registry_referrers(const Asked& asked) {
  return of_repository(asked, [&](const Found&) {
    return digest_of_reference(asked.name("DIGEST"))
               ? document_answer(asked.request, oci_no_referrers_json(), kOciIndexType)
               : registry_error(400, "DIGEST_INVALID",
                                "what refers to a manifest is asked for by the manifest's digest");
  });
}

}  // namespace sealift::offline_repo
