// SPDX-License-Identifier: Apache-2.0
// Builder and build type are URNs: they name a program, and no host that somebody would have to maintain.
#include "packager/documents/provenance.hpp"

#include "bundle/core/json.hpp"
#include "packager/host/url.hpp"
#include "packager/models/hub.hpp"
#include "sealift/bundle/payload/bundle_folder.hpp"
#include "sealift/bundle/wheel/wheel_name.hpp"

namespace sealift::packager {

using bundle::Json;

namespace {

// What a lock knows about some bytes besides their digest.
struct Published {
  std::string uri;
  Json annotations = Json::object();
};

Published origin_of(const LockedWheel& wheel) {
  if (!wheel.built_from) return {.uri = wheel.url};
  const LockedBuild& build = *wheel.built_from;
  Json built = {{"kind", name_of(build.kind)},
                {"sha256", build.sha256.hex()},
                {"requirements", build.requirements},
                {"python", build.python},
                {"tools", build.tools}};
  if (!build.url.empty()) built["url"] = build.url;
  if (!build.commit.empty()) built["commit"] = build.commit;
  if (!build.subdirectory.empty()) built["subdirectory"] = build.subdirectory;
  if (!build.sandboxed) built["sandboxed"] = false;
  return {.uri = {}, .annotations = {{"built_from", std::move(built)}}};
}

std::map<bundle::Digest, Published> origins_of(const std::optional<Lock>& lock) {
  std::map<bundle::Digest, Published> origins;
  if (!lock) return origins;
  for (const LockedWheel& wheel : lock->wheels) origins.emplace(wheel.sha256, origin_of(wheel));
  origins.emplace(lock->interpreter.sha256, Published{.uri = {},
                                                      .annotations = {{"interpreter", lock->interpreter.description},
                                                                      {"libraries", lock->interpreter.libraries}}});
  for (const LockedModel& model : lock->models)
    for (const LockedFile& file : model.files)
      if (model.spec.hub != Hub::Folder)  // a folder's path is the packing machine's own business
        origins.emplace(file.sha256, Published{.uri = url_of(model.spec, model.commit, file.path)});
  for (const LockedRpmPackage& rpm : lock->rpm.rpms)
    if (!rpm.url.starts_with("file:")) origins.emplace(rpm.sha256, Published{.uri = rpm.url});
  return origins;
}

// Of the files of hubs' repositories, by their paths in the bundle: "pkg:huggingface/org/name@COMMIT#PATH".
std::map<std::string, std::string> purls_of(const std::vector<BundledModel>& models) {
  std::map<std::string, std::string> purls;
  for (const BundledModel& model : models) {
    if (!model.hub) continue;
    for (const auto& [path, place] : model.files) purls.emplace(place, model.purl() + "#" + percent_encoded(path, "/"));
  }
  return purls;
}

Json resolved_dependencies(const BundleFacts& facts) {
  const std::map<std::string, std::string> purls = purls_of(facts.models);
  const std::map<bundle::Digest, Published> origins = origins_of(facts.lock);
  Json resolved = Json::array();
  for (const bundle::Entry& entry : facts.manifest().entries) {
    Json item = {{"name", entry.path.text()}, {"digest", {{"sha256", entry.sha256.hex()}}}};
    if (const auto wheel = facts.wheels.find(entry.path.text()); wheel != facts.wheels.end())
      item["uri"] =
          purl_of("pypi", bundle::normalized_project_name(wheel->second.facts.project), wheel->second.facts.version);
    if (const auto purl = purls.find(entry.path.text()); purl != purls.end()) item["uri"] = purl->second;
    if (const auto known = origins.find(entry.sha256); known != origins.end()) {
      if (!known->second.uri.empty()) item["uri"] = known->second.uri;
      if (!known->second.annotations.empty()) item["annotations"] = known->second.annotations;
    }
    if (entry.build != bundle::WheelBuild::None)  // signed, and also known without a lock
      item["annotations"]["built_from"]["sandboxed"] = entry.build == bundle::WheelBuild::Sandboxed;
    resolved.push_back(std::move(item));
  }
  return resolved;
}

// What the statement is about: every file of the bundle's folder, and the signed manifest inside the seal.
Json subjects_of(const BundleFacts& facts) {
  const bundle::Manifest& manifest = facts.manifest();
  const bundle::Payload& payload = manifest.payload;
  Json subjects = Json::array();
  const auto add = [&](const std::string& name, const bundle::Digest& digest, const std::string& algorithm) {
    subjects.push_back({{"name", name}, {"digest", {{algorithm, digest.hex()}}}});
  };
  add(manifest.stem() + ".manifest", facts.source.identity(), "sha256");
  add(manifest.stem() + std::string(bundle::kSealSuffix), facts.seal, "sha256");
  add(manifest.stem() + std::string(bundle::kChunksSuffix), payload.chunk_list_digest, name_of(payload.digest));
  for (std::size_t i = 0; i < payload.volumes.size(); ++i) add(payload.volumes[i].name, facts.volumes.at(i), "sha256");
  for (const bundle::Companion& companion : manifest.companions) add(companion.name, companion.sha256, "sha256");
  return subjects;
}

}  // namespace

std::string provenance_json(const BundleFacts& facts) {
  const bundle::Manifest& manifest = facts.manifest();
  return bundle::write_json(
      {{"_type", "https://in-toto.io/Statement/v1"},
       {"subject", subjects_of(facts)},
       {"predicateType", "https://slsa.dev/provenance/v1"},
       {"predicate",
        {{"buildDefinition",
          {{"buildType", "urn:sealift:bundle:v1"},
           {"externalParameters",
            {{"name", manifest.name},
             {"version", manifest.version},
             {"channel", manifest.channel},
             {"target", {{"arch", manifest.target.arch}, {"glibc", manifest.target.glibc.text()}}},
             {"imports", manifest.environment.imports}}},
           {"resolvedDependencies", resolved_dependencies(facts)}}},
         {"runDetails",
          {{"builder", {{"id", "urn:sealift:sealift-pack"}}},
           {"metadata",
            {{"invocationId", serial_number(facts.source.identity())}, {"finishedOn", manifest.created}}}}}}}});
}

}  // namespace sealift::packager
