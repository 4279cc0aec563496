// SPDX-License-Identifier: Apache-2.0
// A repository is one index and what it names, so it is served whole or not at all.
#include "offline_repo/catalogue/rpm_repositories.hpp"

#include <utility>

#include "offline_repo/catalogue/not_served.hpp"

namespace sealift::offline_repo {

std::vector<InBoth> add_rpms(RpmRepositories& repositories, const std::shared_ptr<const bundle::VerifiedBundle>& in,
                             const std::set<std::string>& rotten) {
  static constexpr std::string_view kFolder = "files/rpm/";
  const bundle::Manifest& manifest = in->manifest();
  ServedRpmRepository repository{.created = manifest.created, .files = {}};
  for (const bundle::Entry& entry : manifest.entries) {
    const std::string& path = entry.path.text();
    if (entry.kind != bundle::EntryKind::File || !path.starts_with(kFolder)) continue;
    if (entry.absent || rotten.contains(path)) return {rpms_in_part(manifest.stem(), path, entry.absent)};
    repository.files.emplace(path.substr(kFolder.size()), served_file(in, entry, "a file of the rpm packages"));
  }
  if (!repository.files.contains("repodata/repomd.xml")) return {};
  ServedRpmRepository& place = repositories[manifest.name];
  if (place.created <= repository.created) place = std::move(repository);
  return {};
}

}  // namespace sealift::offline_repo
