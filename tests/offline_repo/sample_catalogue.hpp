// SPDX-License-Identifier: Apache-2.0
// A catalogue without bundles behind it, for the parts that are pure: one value in, one value out.
#pragma once

#include "offline_repo/catalogue/catalogue.hpp"

namespace sealift::test {

inline offline_repo::IndexedWheel sample_wheel(const std::string& file_name, const std::string& version) {
  const std::string metadata = "Metadata-Version: 2.1\nName: x\nVersion: " + version + "\n";
  offline_repo::IndexedWheel wheel{.file_name = file_name,
                                   .version = version,
                                   .requires_python = ">=3.9",
                                   .metadata = metadata,
                                   .metadata_sha256 = bundle::sha256(bundle::as_bytes(metadata)),
                                   .uploaded = "2026-01-02T03:04:05Z"};
  wheel.size = 1000;
  wheel.sha256 = bundle::sha256(bundle::as_bytes(file_name));
  return wheel;
}

inline const std::string kSampleCommit(40, 'c');

// A repository at one commit, which `main` and the tag "v1" name.
inline void add_repository(offline_repo::Catalogue& catalogue, bundle::HubName name,
                           const std::vector<std::string>& paths) {
  offline_repo::HubCommit commit{.id = kSampleCommit, .created = "2026-01-01T00:00:00Z", .files = {}};
  for (const std::string& path : paths)
    commit.files[path] = {.size = 1000, .sha256 = bundle::sha256(bundle::as_bytes(path))};
  catalogue.repositories[name] = {.name = name,
                                  .commits = {{kSampleCommit, commit}},
                                  .revisions = {{"v1", {.id = kSampleCommit, .created = commit.created}}}};
}

// Two projects: demo-kit with two versions, torch with a local version ('+' in its file name). Three repositories: a
// model and a data set of one name, and a model without an organisation.
inline offline_repo::Catalogue sample_catalogue() {
  offline_repo::Catalogue catalogue{.bundles = {"tiny-1"}};
  const auto add = [&catalogue](const std::string& project, offline_repo::IndexedWheel wheel) {
    offline_repo::Project& place = catalogue.projects[project];
    place.name = project;
    place.wheels[wheel.file_name] = std::move(wheel);
  };
  add("demo-kit", sample_wheel("Demo_Kit-1.0-py3-none-any.whl", "1.0"));
  add("demo-kit", sample_wheel("Demo_Kit-1.1-py3-none-any.whl", "1.1"));
  add("torch", sample_wheel("torch-2.0+cu1-py3-none-any.whl", "2.0+cu1"));
  add_repository(catalogue, {.id = "org/tiny"}, {"config.json", "sub/a b.json", "sub/deep/weights.safetensors"});
  add_repository(catalogue, {.kind = bundle::RepositoryKind::Dataset, .id = "org/tiny"}, {"rows.jsonl"});
  add_repository(catalogue, {.id = "gpt2"}, {"config.json"});
  return catalogue;
}

}  // namespace sealift::test
