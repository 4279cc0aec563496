// SPDX-License-Identifier: Apache-2.0
// Small bundles with repositories of hubs, listed as the packager lists them.
#pragma once

#include <map>

#include "tests/support/tiny_bundle.hpp"

namespace sealift::test {

struct TinyRepository {
  bundle::HubName name;
  std::string commit = std::string(40, 'c');
  std::vector<std::string> revisions = {"main"};
  std::map<std::string, std::string> files;  // path -> bytes
  std::vector<std::string> absent = {};      // of those: what a delta does not carry
};

inline TinyItem catalogue_item(const std::string& text) {
  return {
      .path = std::string(bundle::kHubCatalogueEntry), .bytes = text, .into = std::string(bundle::kHubCataloguePlace)};
}

// Files of the repositories, and the list of them; each in a folder of its own.
inline std::vector<TinyItem> hub_items(const std::vector<TinyRepository>& repositories) {
  std::vector<TinyItem> items;
  bundle::HubCatalogue catalogue;
  for (const TinyRepository& one : repositories) {
    const std::string folder = "models/" + std::to_string(catalogue.size()) + "/";
    bundle::HubRepository listed{.name = one.name, .commit = one.commit, .revisions = one.revisions, .files = {}};
    for (const auto& [path, bytes] : one.files) {
      const bool absent = std::find(one.absent.begin(), one.absent.end(), path) != one.absent.end();
      items.push_back({.path = "files/" + folder + path, .bytes = bytes, .into = folder + path, .absent = absent});
      listed.files.push_back({.path = bundle::SafePath::parse(path, ""),
                              .entry = bundle::SafePath::parse("files/" + folder + path, ""),
                              .size = bytes.size(),
                              .sha256 = bundle::sha256(bundle::as_bytes(bytes))});
    }
    catalogue.push_back(std::move(listed));
  }
  items.push_back(catalogue_item(bundle::write_hub_catalogue(catalogue)));
  return items;
}

}  // namespace sealift::test
