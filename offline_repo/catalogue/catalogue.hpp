// SPDX-License-Identifier: Apache-2.0
// What the verified bundles offer: to pip and uv projects and their wheels, to the clients of model hubs repositories.
// Made once at start-up. A request is then a lookup in it, so no text of a request ever becomes a path.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "offline_repo/catalogue/hub_repositories.hpp"
#include "offline_repo/catalogue/served_file.hpp"

namespace sealift::offline_repo {

struct IndexedWheel : ServedFile {
  std::string file_name;
  std::string version;                         // as METADATA spells it
  std::optional<std::string> requires_python;  // likewise
  std::string metadata;                        // the METADATA file, byte for byte
  bundle::Digest metadata_sha256;
  std::string uploaded;  // when the first bundle that has it was made; RFC 3339, UTC
};

struct Project {
  std::string name;                            // normalized
  std::map<std::string, IndexedWheel> wheels;  // by file name

  std::set<std::string> versions() const;
};

struct Catalogue {
  std::vector<std::string> bundles;                      // NAME-VERSION of each, as they were given
  std::map<std::string, Project, std::less<>> projects;  // by normalized name
  HubRepositories repositories;
  std::vector<std::string> left_out;  // a line for people on each commit that is not served

  std::size_t wheel_count() const;
  // Null when there is none; `name` in any spelling.
  const Project* find_project(std::string_view name) const;
  // Null unless a wheel has both this name and this digest.
  const IndexedWheel* find_wheel(std::string_view sha256, std::string_view file_name) const;
};

// The union of the bundles' wheels and repositories, without what a delta does not carry. Reads only the chunks that
// hold METADATA and the catalogues of hubs. Throws Conflict when two files have one name and different bytes,
// CannotCheck when one is stored compressed, so that no range of it can be served, Format for a bad catalogue.
Catalogue make_catalogue(std::vector<bundle::VerifiedBundle> bundles);

}  // namespace sealift::offline_repo
