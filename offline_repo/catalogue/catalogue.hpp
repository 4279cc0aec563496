// SPDX-License-Identifier: Apache-2.0
// What the verified bundles offer to pip and uv: projects and their wheels, as one plain value.
// It is made once at start-up; afterwards a request is a look-up in it, and no text of a request ever becomes a path.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::offline_repo {

struct IndexedWheel {
  std::string file_name;
  std::string version;                         // as METADATA spells it
  std::optional<std::string> requires_python;  // likewise
  std::uint64_t size = 0;
  bundle::Digest sha256;
  std::string metadata;  // the METADATA file, byte for byte
  bundle::Digest metadata_sha256;
  std::uint64_t payload_offset = 0;                  // of its first byte
  std::shared_ptr<const bundle::VerifiedBundle> in;  // the bundle that holds it
};

struct Project {
  std::string name;                            // normalized
  std::map<std::string, IndexedWheel> wheels;  // by file name

  std::set<std::string> versions() const;
};

struct Catalog {
  std::vector<std::string> bundles;                      // NAME-VERSION of each, as they were given
  std::map<std::string, Project, std::less<>> projects;  // by normalized name

  std::size_t wheel_count() const;
  // Null when there is none; `name` in any spelling.
  const Project* find_project(std::string_view name) const;
  // Null unless a wheel has both this name and this digest.
  const IndexedWheel* find_wheel(std::string_view sha256, std::string_view file_name) const;
};

// The union of the bundles' wheels; what a delta does not carry is not offered. Reads their METADATA, and so only the
// chunks that hold it. Throws Conflict when two wheels have one name and different bytes, CannotCheck when a wheel is
// stored in a form that has no ranges.
Catalog make_catalog(std::vector<bundle::VerifiedBundle> bundles);

}  // namespace sealift::offline_repo
