// SPDX-License-Identifier: Apache-2.0
// Paths were checked when the catalogue was read, so they are UTF-8 and need no escaping but JSON's.
#include "offline_repo/protocols/hub_pages.hpp"

#include <set>

#include "bundle/core/json.hpp"
#include "offline_repo/protocols/header_text.hpp"

namespace sealift::offline_repo {

namespace {

using bundle::Json;
using bundle::write_json;

constexpr std::size_t kMaxBodyValues = 100'000;

// Older clients want fractions of a second.
std::string time_of(const HubCommit& commit) {
  return commit.created.substr(0, commit.created.find('Z')) + ".000Z";
}

// Of the pointer that LFS would keep in git: three lines, of which the size's varies.
std::size_t pointer_size(std::uint64_t size) {
  constexpr std::size_t kWithoutSize = 125;
  return kWithoutSize + std::to_string(size).size();
}

Json file_json(const std::string& path, const ServedFile& file) {
  const std::string digest = file.sha256.hex();
  return {{"type", "file"},
          {"path", path},
          {"size", file.size},
          {"oid", digest},
          {"lfs", {{"oid", digest}, {"size", file.size}, {"pointerSize", pointer_size(file.size)}}}};
}

// Clients want a name of the folder's content, and compare it with nothing: the commit and the path are one.
Json folder_json(const HubCommit& commit, const std::string& path) {
  const std::string oid = bundle::sha256(bundle::as_bytes(commit.id + "/" + path)).hex().substr(0, 40);
  return {{"type", "directory"}, {"path", path}, {"size", 0}, {"oid", oid}};
}

bool is_folder(const HubCommit& commit, const std::string& path) {
  const auto first = commit.files.lower_bound(path + "/");
  return first != commit.files.end() && first->first.starts_with(path + "/");
}

Json sibling_json(const std::string& path, const ServedFile& file, bool sizes) {
  if (!sizes) return {{"rfilename", path}};
  const std::string digest = file.sha256.hex();
  return {{"rfilename", path},
          {"size", file.size},
          {"blobId", digest},
          {"lfs", {{"sha256", digest}, {"size", file.size}, {"pointerSize", pointer_size(file.size)}}}};
}

// huggingface_hub 0.20 fails without `private`, `gated` and their like, which say nothing here.
Json about(const ServedRepository& repository, const HubCommit& commit) {
  const std::string& id = repository.name.id;
  Json info = {{"id", id},
               {"sha", commit.id},
               {"lastModified", time_of(commit)},
               {"createdAt", time_of(commit)},
               {"private", false},
               {"gated", false},
               {"disabled", false},
               {"downloads", 0},
               {"likes", 0},
               {"tags", Json::array()}};
  if (repository.name.kind == bundle::RepositoryKind::Model) info["modelId"] = id;
  if (const std::size_t slash = id.find('/'); slash != id.npos) info["author"] = id.substr(0, slash);
  return info;
}

}  // namespace

std::string hub_info_json(const ServedRepository& repository, const HubCommit& commit, bool sizes) {
  Json info = about(repository, commit);
  info["siblings"] = Json::array();
  for (const auto& [path, file] : commit.files) info["siblings"].push_back(sibling_json(path, file, sizes));
  return write_json(info);
}

std::string hub_list_json(const HubRepositories& repositories, bundle::RepositoryKind kind, const HubSearch& search) {
  const std::string words = lower_case(search.words), author = search.author.empty() ? "" : search.author + "/";
  Json list = Json::array();
  for (const auto& [name, repository] : repositories) {
    if (name.hub != bundle::HubKind::HuggingFace || name.kind != kind || repository.commits.empty() ||
        list.size() >= search.limit)
      continue;
    if (!name.id.starts_with(author) || lower_case(name.id).find(words) == std::string::npos) continue;
    const HubCommit* commit = repository.find(repository.default_branch());
    list.push_back(about(repository, commit != nullptr ? *commit : repository.commits.begin()->second));
  }
  return write_json(list);
}

std::string hub_user_json(const std::string& user) {
  const std::string name = user.empty() ? "anybody" : user;
  return write_json({{"type", "user"},
                     {"id", name},
                     {"name", name},
                     {"fullname", name},
                     {"orgs", Json::array()},
                     {"auth", {{"type", "access_token"}, {"accessToken", {{"displayName", name}, {"role", "read"}}}}}});
}

std::optional<std::string> hub_tree_json(const HubCommit& commit, const std::string& path, bool recursive) {
  if (!path.empty() && !is_folder(commit, path)) return std::nullopt;
  Json items = Json::array();
  for (const auto& [name, file] : commit.list(path, recursive))
    items.push_back(file != nullptr ? file_json(name, *file) : folder_json(commit, name));
  return write_json(items);
}

std::string hub_paths_json(const HubCommit& commit, const std::vector<std::string>& paths) {
  Json items = Json::array();
  for (const std::string& path : std::set<std::string>(paths.begin(), paths.end()))
    if (const auto file = commit.files.find(path); file != commit.files.end())
      items.push_back(file_json(path, file->second));
    else if (!path.empty() && is_folder(commit, path))
      items.push_back(folder_json(commit, path));
  return write_json(items);
}

std::string hub_refs_json(const ServedRepository& repository) {
  std::set<std::string> names = {std::string(repository.default_branch())};
  for (const auto& [name, commit] : repository.revisions) names.insert(name);
  Json branches = Json::array();
  for (const std::string& name : names)
    branches.push_back({{"name", name}, {"ref", "refs/heads/" + name}, {"targetCommit", repository.find(name)->id}});
  return write_json({{"branches", std::move(branches)},
                     {"tags", Json::array()},
                     {"converts", Json::array()},
                     {"pullRequests", Json::array()}});
}

std::string hub_commits_json(const HubCommit& commit) {
  Json commits = Json::array();
  commits.push_back({{"id", commit.id},
                     {"title", "What the bundle carries"},
                     {"message", ""},
                     {"date", time_of(commit)},
                     {"authors", Json::array()}});
  return write_json(commits);
}

std::string hub_error_json(std::string_view why) {
  return write_json({{"error", why}});
}

std::optional<std::vector<std::string>> paths_of_json(std::string_view body) {
  std::vector<std::string> paths;
  try {
    const Json json = bundle::parse_json(body, "body", kMaxBodyValues);
    if (!json.is_object() || !json.contains("paths")) return std::nullopt;
    const Json& given = json["paths"];
    if (given.is_string()) return std::vector{given.get<std::string>()};
    if (!given.is_array()) return std::nullopt;
    for (const Json& path : given) {
      if (!path.is_string()) return std::nullopt;
      paths.push_back(path.get<std::string>());
    }
  } catch (const bundle::Error&) {
    return std::nullopt;
  }
  return paths;
}

}  // namespace sealift::offline_repo
