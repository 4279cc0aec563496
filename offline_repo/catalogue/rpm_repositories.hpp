// SPDX-License-Identifier: Apache-2.0
// What the verified bundles offer to dnf: of each bundle with rpm packages the repository that was made outside, file
// by file. Nothing of it is parsed here; a signed path is served, and nothing else.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "offline_repo/catalogue/in_both.hpp"
#include "offline_repo/catalogue/served_file.hpp"

namespace sealift::offline_repo {

struct ServedRpmRepository {
  std::string created;                                   // of its bundle: RFC 3339
  std::map<std::string, ServedFile, std::less<>> files;  // "repodata/repomd.xml", "keys.asc", "NAME-….rpm"
};

inline constexpr char kRpmKeys[] = "keys.asc";                     // of the packages, where they are signed
inline constexpr char kRpmIndexKey[] = "repodata/repomd.xml.key";  // of the index, where it is

using RpmRepositories = std::map<std::string, ServedRpmRepository, std::less<>>;  // by the bundle's name

// Adds the repository of `in`, where it has one; of two bundles of one name the newer stays. Returns a line for people
// when a part of it is not carried or damaged, so that it is not served. Throws CannotCheck as served_file does.
std::vector<InBoth> add_rpms(RpmRepositories& repositories, const std::shared_ptr<const bundle::VerifiedBundle>& in,
                             const std::set<std::string>& rotten = {});

}  // namespace sealift::offline_repo
