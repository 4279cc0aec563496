// SPDX-License-Identifier: Apache-2.0
// What the verified bundles offer to apt: of each bundle's name one flat repository, as the packager made it. Its index
// was signed outside, where the key is, so bundles of different names are never merged into one.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "offline_repo/catalogue/in_both.hpp"
#include "offline_repo/catalogue/served_file.hpp"

namespace sealift::offline_repo {

struct AptRepository {
  std::string created;                                   // of the bundle: RFC 3339
  std::map<std::string, ServedFile, std::less<>> files;  // by name; of the index also by-hash/SHA256/DIGEST
};

using AptRepositories = std::map<std::string, AptRepository, std::less<>>;  // by the bundle's name

struct AptSource {
  std::shared_ptr<const bundle::VerifiedBundle> in;
  const std::set<std::string>* rotten;  // paths of entries that are not served
};

inline constexpr char kAptKey[] = "archive-key.asc";  // the public key that signed, where one did

// Of two bundles with one name the newer one is served. What a delta does not carry comes from any of the
// others. `lines` gets a line for people on each package that is missing, and on each index.
AptRepositories apt_repositories_of(const std::vector<AptSource>& bundles, std::vector<InBoth>& lines);

}  // namespace sealift::offline_repo
