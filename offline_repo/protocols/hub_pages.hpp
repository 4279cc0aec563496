// SPDX-License-Identifier: Apache-2.0
// The documents of a model hub's API, in JSON: what huggingface_hub, transformers and datasets read of them.
// Every file is told as LFS tells one, by its SHA-256, which is the digest that is signed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "offline_repo/catalogue/hub_repositories.hpp"

namespace sealift::offline_repo {

// What a repository is at a commit, with the names of its files; `sizes`: with their sizes and digests, too.
std::string hub_info_json(const ServedRepository& repository, const HubCommit& commit, bool sizes);

// What a list of repositories is asked for; a repository is in it whose name has `words`, whatever their case.
struct HubSearch {
  std::string words, author;
  std::size_t limit = 1000;
};
std::string hub_list_json(const HubRepositories& repositories, bundle::RepositoryKind kind, const HubSearch& search);

// Whose token it is, as `hf auth login` asks before it keeps one; an empty name: everybody is served.
std::string hub_user_json(const std::string& user);

// Files and folders below `path` ("": the root), those of folders below it where `recursive`. Nothing unless `path` is
// a folder.
std::optional<std::string> hub_tree_json(const HubCommit& commit, const std::string& path, bool recursive);

// Those of `paths` that are files or folders, sorted, each once.
std::string hub_paths_json(const HubCommit& commit, const std::vector<std::string>& paths);

// Branches and tags, all as branches: nobody says which is which.
std::string hub_refs_json(const ServedRepository& repository);

std::string hub_commits_json(const HubCommit& commit);

// {"error": …}, as a hub's clients show it.
std::string hub_error_json(std::string_view why);

// The paths of a body such as {"paths": ["a", "b"]}. Nothing when it is another text.
std::optional<std::vector<std::string>> paths_of_json(std::string_view body);

}  // namespace sealift::offline_repo
