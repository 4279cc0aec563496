// SPDX-License-Identifier: Apache-2.0
// See entry_routes.hpp. Paths are looked up in the list as they are. What a path holds changes with the bundle, so it
// is asked for again, by its ETag.
#include "offline_repo/routes/entry_routes.hpp"

#include "offline_repo/routes/answers.hpp"

namespace sealift::offline_repo {

namespace {

Response answer_from(const Catalogue& catalogue, const Request& request, const std::vector<std::string>& segments) {
  const auto list = segments.size() < 2 ? catalogue.entries.end() : catalogue.entries.find(segments[1]);
  if (list == catalogue.entries.end())
    return refusal(404, "no bundle of this name is here; the list of a bundle's files is at entries/NAME/");
  const EntryList& entries = *list->second;
  std::string path;
  for (std::size_t i = 2; i < segments.size(); ++i) path += (i > 2 ? "/" : "") + segments[i];
  if (path.empty())
    return shared_answer(request, entries.sums, entries.sums_sha256, "text/plain; charset=utf-8", kPageCaching);
  const ServedFile* file = entries.find(path);
  if (file == nullptr) return refusal(404, "this bundle has no such file as it is; the list is at entries/NAME/");
  return file_answer(request, *file, kPageCaching);
}

}  // namespace

Response entry_answer(const Catalogue& catalogue, const Request& request, const Target& target) {
  Response response = answer_from(catalogue, request, target.segments);
  response.route = RouteKind::Entry;
  return response;
}

}  // namespace sealift::offline_repo
