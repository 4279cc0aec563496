// SPDX-License-Identifier: Apache-2.0
// What the verified bundles offer to the clients of model hubs: repositories, commits and files, as one plain value.
// It comes from each bundle's signed catalogue (sealift/bundle/manifest/hub_catalogue.hpp) and from nothing else.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "offline_repo/catalogue/in_both.hpp"
#include "offline_repo/catalogue/served_file.hpp"
#include "sealift/bundle/manifest/hub_catalogue.hpp"

namespace sealift::offline_repo {

struct HubCommit {
  std::string id;                                        // 40 hexadecimal digits; of ModelScope a branch or tag
  std::string created;                                   // the newest bundle's that has it: RFC 3339
  std::map<std::string, ServedFile, std::less<>> files;  // by their paths in the repository
  std::vector<std::string> missing = {};                 // listed by a delta, and carried by no bundle so far

  // A path, and its file or null for a folder.
  using Item = std::pair<std::string, const ServedFile*>;
  // What lies in `folder` ("": the root), and where `recursive` in those below it. Empty unless that is a folder.
  std::vector<Item> list(const std::string& folder, bool recursive) const;
};

// What a branch or tag stands for, as the newest bundle with this name says.
struct NamedCommit {
  std::string id;
  std::string created;  // of that bundle
};

struct ServedRepository {
  bundle::HubName name;
  std::map<std::string, HubCommit, std::less<>> commits;      // by id
  std::map<std::string, NamedCommit, std::less<>> revisions;  // by branch or tag

  // The commit itself, or what a branch or tag stands for. A hub's own default branch, where nobody asked for it, is
  // the newest commit. Null when there is none.
  const HubCommit* find(std::string_view revision) const;
  // "main", or ModelScope's "master".
  std::string_view default_branch() const;
};

using HubRepositories = std::map<bundle::HubName, ServedRepository>;

// What the bundle's signed catalogue says, nothing where it has none. Throws Format when its catalogue is malformed.
bundle::HubCatalogue read_hub_repositories(const bundle::VerifiedBundle& in);

// Adds what `in` carries, as its catalogue lists it, without the entries of `rotten`. Throws Conflict when two bundles
// disagree about a file of one commit, CannotCheck as served_file does.
void add_hub_repositories(HubRepositories& repositories, const bundle::HubCatalogue& listed,
                          const std::shared_ptr<const bundle::VerifiedBundle>& in,
                          const std::set<std::string>& rotten = {});

// Takes out each commit of which a file is missing, since its clients could not tell that they got a part of it.
// Returns a line for each, for people.
std::vector<InBoth> drop_incomplete(HubRepositories& repositories);

}  // namespace sealift::offline_repo
