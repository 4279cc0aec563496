// SPDX-License-Identifier: Apache-2.0
// See entry_routes.hpp. Paths are looked up in the list as they are; a path that ends with a slash is a folder. What a
// path holds changes with the bundle, so it is asked for again, by its ETag.
#include "offline_repo/routes/entry_routes.hpp"

#include <optional>

#include "offline_repo/protocols/entry_pages.hpp"
#include "offline_repo/protocols/index_pages.hpp"
#include "offline_repo/routes/answers.hpp"

namespace sealift::offline_repo {

namespace {

// `location` is relative and made of names that are there, escaped.
Response moved_to(std::string location) {
  Response response = refusal(301, "the page is at " + location);
  response.headers.emplace_back("Location", std::move(location));
  return response;
}

Response in_bundle(const Asked& asked, const std::string& name, const EntryList& entries, std::string path) {
  if (path == kSumsFile && entries.find(path) == nullptr)
    return shared_answer(asked.request, entries.sums, entries.sums_sha256, "text/plain; charset=utf-8", kPageCaching);
  if (const ServedFile* file = entries.find(path)) return file_answer(asked.request, *file, kPageCaching);
  const bool slash = path.empty() || path.ends_with('/');
  if (path.ends_with('/')) path.pop_back();
  std::optional<std::string> page;
  if (!slash || !asked.target.segments[asked.target.segments.size() - 2].empty())
    page = folder_page(name, entries, path, Words(reader_language(asked)));
  if (!page)
    return refusal(404,
                   "this bundle has no such file as it is; its folders are at entries/NAME/, and the digests of all "
                   "its files at entries/NAME/SHA256SUMS");
  return slash ? page_answer(asked.request, *std::move(page))
               : moved_to(url_escaped(path.substr(path.rfind('/') + 1)) + "/");
}

}  // namespace

Response entry_answer(const Asked& asked) {
  const Target& target = asked.target;
  const std::string name = asked.name("NAME");
  if (target.segments.size() == 1) return moved_to("entries/");
  if (name.empty() && target.segments.size() == 2)
    return page_answer(asked.request, bundle_folders(asked.catalogue.entries, Words(reader_language(asked))));
  const auto list = asked.catalogue.entries.find(name);
  if (list == asked.catalogue.entries.end()) return refusal(404, "no bundle of this name is here; entries/ lists all");
  if (target.segments.size() == 2) return moved_to(url_escaped(name) + "/");
  return in_bundle(asked, name, *list->second, asked.name("PATH"));
}

}  // namespace sealift::offline_repo
