// SPDX-License-Identifier: Apache-2.0
// An id of two parts is tried before an id of one, so a repository "org/tree" hides no route of a repository "org"
// that is asked for with a revision.
#include "offline_repo/protocols/hub_target.hpp"

#include <utility>

namespace sealift::offline_repo {

namespace {

using Segments = std::vector<std::string>;

constexpr std::pair<std::string_view, HubRoute> kWords[] = {{"revision", HubRoute::Info},
                                                            {"tree", HubRoute::Tree},
                                                            {"paths-info", HubRoute::PathsInfo},
                                                            {"refs", HubRoute::Refs},
                                                            {"commits", HubRoute::Commits}};

std::string joined(const Segments& segments, std::size_t from) {
  std::string path;
  for (std::size_t i = from; i < segments.size(); ++i) path += (i > from ? "/" : "") + segments[i];
  while (path.ends_with('/')) path.pop_back();
  return path;
}

const ServedRepository* find(const HubRepositories& repositories, bundle::RepositoryKind kind, const std::string& id) {
  const auto found = repositories.find({.hub = bundle::HubKind::HuggingFace, .kind = kind, .id = id});
  return found != repositories.end() ? &found->second : nullptr;
}

// What stands behind the id: WORD[/REV[/PATH]]. Nothing when the word is no route.
std::optional<HubTarget> behind_id(const Segments& segments, std::size_t at, const ServedRepository* repository) {
  HubTarget target{.repository = repository, .revision = "main"};
  if (at >= segments.size() || (at + 1 == segments.size() && segments[at].empty())) return target;
  for (const auto& [word, route] : kWords) {
    if (segments[at] != word) continue;
    target.route = route;
    if (at + 1 < segments.size()) target.revision = segments[at + 1];
    target.path = joined(segments, at + 2);
    return target;
  }
  return std::nullopt;
}

std::optional<HubTarget> api_target(const Segments& segments, const HubRepositories& repositories) {
  if (segments.size() < 3 || segments[0] != "api") return std::nullopt;
  if (segments[1] != "models" && segments[1] != "datasets") return std::nullopt;
  const bundle::RepositoryKind kind =
      segments[1] == "models" ? bundle::RepositoryKind::Model : bundle::RepositoryKind::Dataset;
  if (segments.size() > 3)
    if (const ServedRepository* two = find(repositories, kind, segments[2] + "/" + segments[3]))
      return behind_id(segments, 4, two);
  if (const ServedRepository* one = find(repositories, kind, segments[2])) return behind_id(segments, 3, one);
  return HubTarget{};
}

// The word stands behind an id of two parts, or of one.
std::optional<HubTarget> resolve_target(const Segments& segments, const HubRepositories& repositories) {
  const bool dataset = segments[0] == "datasets";
  const std::size_t first = dataset ? 1 : 0;
  const bundle::RepositoryKind kind = dataset ? bundle::RepositoryKind::Dataset : bundle::RepositoryKind::Model;
  for (const std::size_t parts : {2, 1}) {
    const std::size_t at = first + parts;
    if (segments.size() < at + 3 || segments[at] != "resolve") continue;
    const std::string id = parts == 2 ? segments[first] + "/" + segments[first + 1] : segments[first];
    return HubTarget{.route = HubRoute::Resolve,
                     .repository = find(repositories, kind, id),
                     .revision = segments[at + 1],
                     .path = joined(segments, at + 2)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<HubTarget> parse_hub_target(const Segments& segments, const HubRepositories& repositories) {
  if (std::optional<HubTarget> target = api_target(segments, repositories)) return target;
  return resolve_target(segments, repositories);
}

}  // namespace sealift::offline_repo
