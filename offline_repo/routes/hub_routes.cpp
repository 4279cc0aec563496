// SPDX-License-Identifier: Apache-2.0
// No header of xet's is ever sent, so clients that have it take plain HTTP.
#include "offline_repo/routes/hub_routes.hpp"

#include <algorithm>

#include "offline_repo/protocols/hub_pages.hpp"
#include "offline_repo/protocols/index_pages.hpp"
#include "offline_repo/requests/request_target.hpp"
#include "offline_repo/routes/answers.hpp"

namespace sealift::offline_repo {

namespace {

constexpr char kJson[] = "application/json";
constexpr char kBranchCaching[] = "no-cache";  // a branch moves when another bundle is served

Response hub_error(const char* code, const std::string& why, const HubCommit* commit = nullptr) {
  Response response{.status = 404,
                    .headers = {{"Content-Type", kJson}, {"X-Error-Code", code}, {"X-Error-Message", why}},
                    .body = hub_error_json(why)};
  if (commit != nullptr) response.headers.emplace_back("X-Repo-Commit", commit->id);
  return response;
}

Response no_entry(const HubCommit& commit) {
  return hub_error("EntryNotFound", "the bundles carry no such file of this repository", &commit);
}

Response json_answer(const Request& request, std::string text) {
  const bundle::Digest digest = bundle::sha256(bundle::as_bytes(text));
  return text_answer(request, kJson, std::move(text), digest, kBranchCaching);
}

std::string path_escaped(std::string_view path) {
  std::string text;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    text += (begin > 0 ? "/" : "") + url_escaped(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return text;
}

bool is_plain_path(std::string_view text) {
  static constexpr std::string_view kOther = "-._~/";
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || kOther.find(c) != kOther.npos;
  });
}

std::string value_of(const std::string& query, std::string_view key, std::string_view otherwise) {
  const std::vector<std::string> values = form_values(query, key);
  return values.empty() ? std::string(otherwise) : values[0];
}

bool asks_for(const std::string& query, std::string_view key) {
  const std::string value = value_of(query, key, "");
  return value == "true" || value == "True" || value == "1";
}

Response tree_answer(const Request& request, const HubTarget& target, const HubCommit& commit,
                     const std::string& query) {
  std::optional<std::string> text = hub_tree_json(commit, target.path, asks_for(query, "recursive"));
  return text ? json_answer(request, *std::move(text)) : no_entry(commit);
}

Response paths_answer(const Request& request, const HubCommit& commit) {
  if (request.method != "POST") {
    Response response = refusal(405, "paths are asked for by POST");
    response.headers.emplace_back("Allow", "POST");
    return response;
  }
  const bool json = request.content_type.starts_with(kJson);
  const std::optional<std::vector<std::string>> paths =
      json ? paths_of_json(request.body) : std::optional(form_values(request.body, "paths"));
  if (!paths) return refusal(400, "the body is not JSON such as {\"paths\": [\"config.json\"]}");
  const std::string text = hub_paths_json(commit, *paths);
  return {.status = 200, .headers = {{"Content-Type", kJson}, {"Cache-Control", "no-store"}}, .body = text};
}

// The prefix that a proxy took from the path, where it says so and it can be one.
std::string_view proxy_prefix(std::string_view said) {
  if (!said.starts_with('/') || said.starts_with("//")) return {};
  while (said.ends_with('/')) said.remove_suffix(1);
  return is_plain_path(said) ? said : std::string_view();
}

// A client asks for a file several times: what it is, its bytes, and the rest of them where the connection broke. A
// branch may mean another commit by then, so it leads to the commit, as the hub's own server does. A path from the
// root, since clients put it in the place of theirs.
Response at_commit(const Request& request, const HubTarget& target, const HubCommit& commit) {
  const bool dataset = target.repository->name.kind == bundle::RepositoryKind::Dataset;
  std::string place = std::string(proxy_prefix(request.forwarded_prefix)) + request.root;
  place += (dataset ? "/datasets/" : "/") + path_escaped(target.repository->name.id) + "/resolve/" + commit.id + "/" +
           path_escaped(target.path);
  Response response = refusal(307, "the file is at " + place);
  response.headers.emplace_back("Location", std::move(place));
  response.headers.emplace_back("Cache-Control", kBranchCaching);
  response.headers.emplace_back("Vary", "X-Forwarded-Prefix");
  return response;
}

Response resolve_answer(const Request& request, const HubTarget& target, const HubCommit& commit) {
  const auto found = commit.files.find(target.path);
  if (found == commit.files.end()) return no_entry(commit);
  const ServedFile& file = found->second;
  const bool branch = target.revision != commit.id;
  Response response = branch && !request.loses_token
                          ? at_commit(request, target, commit)
                          : file_answer(request, file, branch ? kBranchCaching : kFileCaching);
  response.headers.emplace_back("X-Repo-Commit", commit.id);
  response.headers.emplace_back("X-Linked-Size", std::to_string(file.size));
  response.headers.emplace_back("X-Linked-ETag", "\"" + file.sha256.hex() + "\"");
  return response;
}

Response modelscope_error(const std::string& why) {
  return {.status = 404, .headers = {{"Content-Type", kJson}}, .body = modelscope_error_json(why)};
}

Response modelscope_file(const Request& request, const HubCommit& commit, const std::string& path) {
  const auto found = commit.files.find(path);
  if (found == commit.files.end()) return modelscope_error("the bundles carry no such file of this repository");
  return file_answer(request, found->second, kBranchCaching);
}

// Clients write the root as "" or "/", and folders with or without slashes at their ends.
std::string without_slashes(const std::string& path) {
  const std::size_t first = path.find_first_not_of('/');
  return first == path.npos ? "" : path.substr(first, path.find_last_not_of('/') - first + 1);
}

Response modelscope_files(const Request& request, const HubCommit& commit, const std::string& query) {
  const std::string root = without_slashes(value_of(query, "Root", ""));
  const std::optional<ModelScopePage> page =
      modelscope_page(value_of(query, "PageNumber", ""), value_of(query, "PageSize", ""));
  if (!page) return refusal(400, "PageNumber and PageSize are whole numbers from 1 to 999999999");
  std::optional<std::string> text = modelscope_files_json(commit, root, asks_for(query, "Recursive"), *page);
  return text ? json_answer(request, *std::move(text)) : modelscope_error("the bundles carry no such folder");
}

}  // namespace

Response modelscope_answer(const Request& request, const ModelScopeTarget& target, const std::string& query) {
  if (target.repository == nullptr) return modelscope_error("no bundle here carries this repository");
  const ServedRepository& repository = *target.repository;
  if (target.route == ModelScopeRoute::Info) return json_answer(request, modelscope_info_json(repository));
  if (target.route == ModelScopeRoute::Revisions) return json_answer(request, modelscope_revisions_json(repository));
  const HubCommit* commit = repository.find(value_of(query, "Revision", repository.default_branch()));
  if (commit == nullptr) return modelscope_error("no bundle here carries this revision of the repository");
  if (target.route == ModelScopeRoute::Files) return modelscope_files(request, *commit, query);
  return modelscope_file(request, *commit, value_of(query, "FilePath", ""));
}

Response hub_answer(const Request& request, const HubTarget& target, const std::string& query) {
  if (target.repository == nullptr) return hub_error("RepoNotFound", "no bundle here carries this repository");
  const HubCommit* commit = target.repository->find(target.revision);
  if (commit == nullptr) return hub_error("RevisionNotFound", "no bundle here carries this revision of the repository");
  switch (target.route) {
    case HubRoute::Info:
      return json_answer(request, hub_info_json(*target.repository, *commit, asks_for(query, "blobs")));
    case HubRoute::Tree:
      return tree_answer(request, target, *commit, query);
    case HubRoute::PathsInfo:
      return paths_answer(request, *commit);
    case HubRoute::Refs:
      return json_answer(request, hub_refs_json(*target.repository));
    case HubRoute::Commits:
      return json_answer(request, hub_commits_json(*commit));
    case HubRoute::Resolve:
      return resolve_answer(request, target, *commit);
  }
  return hub_error("EntryNotFound", "there is no such page here");
}

}  // namespace sealift::offline_repo
