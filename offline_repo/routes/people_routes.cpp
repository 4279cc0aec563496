// SPDX-License-Identifier: Apache-2.0
// A path is compared with names of the catalogue; what follows the name is a word of the hub's own addresses.
#include "offline_repo/routes/people_routes.hpp"

#include <array>
#include <optional>

#include "offline_repo/protocols/image_page.hpp"
#include "offline_repo/protocols/repository_page.hpp"
#include "offline_repo/routes/answers.hpp"

namespace sealift::offline_repo {

namespace {

using Segments = std::vector<std::string>;

// One that both hubs have is shown as Hugging Face's clients get it.
const ServedRepository* find_repository(const Catalogue& catalogue, bundle::RepositoryKind kind,
                                        const std::string& id) {
  for (const bundle::HubKind hub : {bundle::HubKind::HuggingFace, bundle::HubKind::ModelScope})
    if (const auto found = catalogue.repositories.find({.hub = hub, .kind = kind, .id = id});
        found != catalogue.repositories.end())
      return &found->second;
  return nullptr;
}

Response repository_answer(const Asked& asked, const ServedRepository& repository, const HubCommit& commit) {
  return page_answer(asked.request, repository_page(asked.catalogue, repository, commit, reader_address(asked.request),
                                                    view_root(asked.request), Words(reader_language(asked))));
}

// `rest`: what follows the name.
std::optional<Response> below_repository(const Asked& asked, const ServedRepository& repository, const Segments& rest) {
  if (rest.empty()) {
    const HubCommit* commit = repository.find(repository.default_branch());
    return commit != nullptr ? std::optional(repository_answer(asked, repository, *commit)) : std::nullopt;
  }
  if (rest.size() < 2 || (rest[0] != "tree" && rest[0] != "blob")) return std::nullopt;
  const HubCommit* commit = repository.find(rest[1]);
  if (commit == nullptr) return refusal(404, "the bundles carry no such revision of " + repository.name.id);
  if (rest[0] == "tree") return repository_answer(asked, repository, *commit);
  const std::string path = joined(rest, 2, rest.size());
  if (!commit->files.contains(path)) return refusal(404, "the bundles carry no such file of " + repository.name.id);
  Response response = refusal(302, "the file is below resolve/");
  response.headers.emplace_back("Location",
                                view_root(asked.request) + "/" + file_address(repository.name, *commit, path));
  return response;
}

std::optional<Response> by_repository(const Asked& asked, const Segments& segments) {
  const bool data = !segments.empty() && segments[0] == "datasets";
  const std::size_t begin = data ? 1 : 0;
  for (const std::size_t parts : std::array<std::size_t, 2>{2, 1}) {
    const std::size_t end = begin + parts;
    if (end > segments.size()) continue;
    const ServedRepository* repository =
        find_repository(asked.catalogue, data ? bundle::RepositoryKind::Dataset : bundle::RepositoryKind::Model,
                        joined(segments, begin, end));
    if (repository == nullptr) continue;
    const Segments rest(segments.begin() + static_cast<std::ptrdiff_t>(end), segments.end());
    if (std::optional<Response> response = below_repository(asked, *repository, rest)) return response;
  }
  return std::nullopt;
}

}  // namespace

Response page_of_name(const Asked& asked) {
  Segments segments = asked.target.segments;
  if (!segments.empty() && segments.back().empty()) segments.pop_back();  // one slash at the end
  if (std::optional<Response> response = by_repository(asked, segments)) return *std::move(response);
  if (const auto image = asked.catalogue.images.find(joined(segments, 0, segments.size()));
      image != asked.catalogue.images.end())
    return page_answer(asked.request,
                       image_page(asked.catalogue, image->first, image->second, reader_address(asked.request),
                                  view_root(asked.request), Words(reader_language(asked))));
  return nothing_there(asked);
}

}  // namespace sealift::offline_repo
