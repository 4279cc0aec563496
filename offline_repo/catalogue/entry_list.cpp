// SPDX-License-Identifier: Apache-2.0
// A manifest's entries are sorted by path, and a path has neither line breaks nor backslashes, so no line needs the
// escapes of sha256sum.
#include "offline_repo/catalogue/entry_list.hpp"

#include <algorithm>

namespace sealift::offline_repo {

const ServedFile* EntryList::find(std::string_view path) const {
  const auto found = std::lower_bound(
      files.begin(), files.end(), path,
      [](const ServedFile& file, std::string_view wanted) { return file.entry->path.text() < wanted; });
  return found != files.end() && found->entry->path.text() == path ? &*found : nullptr;
}

std::shared_ptr<const EntryList> entry_list_of(const std::shared_ptr<const bundle::VerifiedBundle>& in,
                                               const std::set<std::string>& rotten) {
  auto list = std::make_shared<EntryList>();
  std::string sums;
  for (const bundle::Entry& entry : in->manifest().entries) {
    const std::string& path = entry.path.text();
    if (entry.absent || entry.encoding != bundle::Encoding::Identity || rotten.contains(path)) continue;
    list->files.push_back(served_file(in, entry, "a file"));
    sums += entry.sha256.hex() + "  " + path + "\n";
  }
  list->sums_sha256 = bundle::sha256(bundle::as_bytes(sums));
  list->sums = std::make_shared<const std::string>(std::move(sums));
  return list;
}

}  // namespace sealift::offline_repo
