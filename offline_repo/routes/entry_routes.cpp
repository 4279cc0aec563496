// SPDX-License-Identifier: Apache-2.0
// See entry_routes.hpp. Paths are looked up in the list as they are. What a path holds changes with the bundle, so it
// is asked for again, by its ETag.
#include "offline_repo/routes/entry_routes.hpp"

#include "offline_repo/routes/answers.hpp"

namespace sealift::offline_repo {

Response entry_answer(const Asked& asked) {
  const auto list = asked.catalogue.entries.find(asked.name("NAME"));
  if (list == asked.catalogue.entries.end())
    return refusal(404, "no bundle of this name is here; the list of a bundle's files is at entries/NAME/");
  const EntryList& entries = *list->second;
  const std::string path = asked.name("PATH");
  if (path.empty())
    return shared_answer(asked.request, entries.sums, entries.sums_sha256, "text/plain; charset=utf-8", kPageCaching);
  const ServedFile* file = entries.find(path);
  if (file == nullptr) return refusal(404, "this bundle has no such file as it is; the list is at entries/NAME/");
  return file_answer(asked.request, *file, kPageCaching);
}

}  // namespace sealift::offline_repo
