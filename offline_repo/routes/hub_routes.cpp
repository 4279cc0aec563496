// SPDX-License-Identifier: Apache-2.0
// No header of xet's is ever sent, so clients that have it take plain HTTP.
#include "offline_repo/routes/hub_routes.hpp"

#include <algorithm>
#include <charconv>

#include "offline_repo/protocols/hub_pages.hpp"
#include "offline_repo/protocols/index_pages.hpp"
#include "offline_repo/routes/answers.hpp"

namespace sealift::offline_repo {

namespace {

constexpr char kBranchCaching[] = "no-cache";  // a branch moves when another bundle is served

Response hub_error(const char* code, const std::string& why, const HubCommit* commit = nullptr) {
  Response response{.status = 404,
                    .headers = {{"Content-Type", kJsonType}, {"X-Error-Code", code}, {"X-Error-Message", why}},
                    .body = hub_error_json(why)};
  if (commit != nullptr) response.headers.emplace_back("X-Repo-Commit", commit->id);
  return response;
}

Response no_entry(const HubCommit& commit) {
  return hub_error("EntryNotFound", "the bundles carry no such file of this repository", &commit);
}

// A client asks for a file several times: what it is, its bytes, and the rest of them where the connection broke. A
// branch may mean another commit by then, so it leads to the commit, as the hub's own server does. A path from the
// root, since clients put it in the place of theirs.
Response at_commit(const Asked& asked, const HubCommit& commit, const std::string& path) {
  const bundle::HubName& name = asked.repository->name;
  std::string place = view_root(asked.request);
  place += (name.kind == bundle::RepositoryKind::Dataset ? "/datasets/" : "/") + path_escaped(name.id) + "/resolve/" +
           commit.id + "/" + path_escaped(path);
  Response response = refusal(307, "the file is at " + place);
  response.headers.emplace_back("Location", std::move(place));
  response.headers.emplace_back("Cache-Control", kBranchCaching);
  response.headers.emplace_back("Vary", "X-Forwarded-Prefix");
  return response;
}

std::string revision_of(const Asked& asked) {
  return asked.name("REV", "main");
}

// Without slashes at its end.
std::string path_of(const Asked& asked) {
  std::string path = asked.name("PATH");
  while (path.ends_with('/')) path.pop_back();
  return path;
}

// What `answer` makes of the commit that was asked for.
template <class Answer>
Response of_commit(const Asked& asked, const Answer& answer) {
  const HubCommit* commit = asked.repository->find(revision_of(asked));
  return commit != nullptr ? answer(*commit)
                           : hub_error("RevisionNotFound", "no bundle here carries this revision of the repository");
}

Response json_answer(const Asked& asked, std::string json) {
  return document_answer(asked.request, std::move(json), kJsonType);
}

}  // namespace

Response no_hub_repository() {
  return hub_error("RepoNotFound", "no bundle here carries this repository");
}

Response hub_list(const Asked& asked) {
  const std::string& query = asked.target.query;
  HubSearch search{.words = form_value(query, "search"), .author = form_value(query, "author")};
  std::size_t limit = 0;
  const std::string given = form_value(query, "limit");
  const auto [end, fault] = std::from_chars(given.data(), given.data() + given.size(), limit);
  if (!given.empty() && fault == std::errc() && end == given.data() + given.size())
    search.limit = std::min(limit, search.limit);
  const auto kind = asked.name("KIND") == "datasets" ? bundle::RepositoryKind::Dataset : bundle::RepositoryKind::Model;
  return json_answer(asked, hub_list_json(asked.catalogue.repositories, kind, search));
}

Response hub_user(const Asked& asked) {
  return json_answer(asked, hub_user_json(asked.request.user));
}

Response hub_info(const Asked& asked) {
  return of_commit(asked, [&](const HubCommit& commit) {
    return json_answer(asked, hub_info_json(*asked.repository, commit, form_flag(asked.target.query, "blobs")));
  });
}

Response hub_tree(const Asked& asked) {
  return of_commit(asked, [&](const HubCommit& commit) {
    std::optional<std::string> json = hub_tree_json(commit, path_of(asked), form_flag(asked.target.query, "recursive"));
    return json ? json_answer(asked, *std::move(json)) : no_entry(commit);
  });
}

Response hub_paths(const Asked& asked) {
  return of_commit(asked, [&](const HubCommit& commit) -> Response {
    const Request& request = asked.request;
    if (request.method != "POST") {
      Response response = refusal(405, "paths are asked for by POST");
      response.headers.emplace_back("Allow", "POST");
      return response;
    }
    const bool json = request.content_type.starts_with(kJsonType);
    const std::optional<std::vector<std::string>> paths =
        json ? paths_of_json(request.body) : std::optional(form_values(request.body, "paths"));
    if (!paths) return refusal(400, "the body is not JSON such as {\"paths\": [\"config.json\"]}");
    const std::string text = hub_paths_json(commit, *paths);
    return {.status = 200, .headers = {{"Content-Type", kJsonType}, {"Cache-Control", "no-store"}}, .body = text};
  });
}

Response hub_refs(const Asked& asked) {
  return of_commit(asked, [&](const HubCommit&) { return json_answer(asked, hub_refs_json(*asked.repository)); });
}

Response hub_commits(const Asked& asked) {
  return of_commit(asked, [&](const HubCommit& commit) { return json_answer(asked, hub_commits_json(commit)); });
}

Response hub_file(const Asked& asked) {
  return of_commit(asked, [&](const HubCommit& commit) {
    const std::string path = path_of(asked);
    const auto found = commit.files.find(path);
    if (found == commit.files.end()) return no_entry(commit);
    const ServedFile& file = found->second;
    const bool branch = revision_of(asked) != commit.id;
    Response response = branch && !asked.request.loses_token
                            ? at_commit(asked, commit, path)
                            : file_answer(asked.request, file, branch ? kBranchCaching : kFileCaching);
    response.headers.emplace_back("X-Repo-Commit", commit.id);
    response.headers.emplace_back("X-Linked-Size", std::to_string(file.size));
    response.headers.emplace_back("X-Linked-ETag", "\"" + file.sha256.hex() + "\"");
    return response;
  });
}

}  // namespace sealift::offline_repo
