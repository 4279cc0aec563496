// SPDX-License-Identifier: Apache-2.0
// Entries are sorted by path, so those of one folder stand together. Nothing of the index is parsed: apt holds each
// package to it.
#include "offline_repo/catalogue/apt_repositories.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "offline_repo/catalogue/not_served.hpp"

namespace sealift::offline_repo {

namespace {

constexpr std::string_view kAptFolder = "files/apt/", kAptIndex = "Packages";
using Entries = std::vector<const bundle::Entry*>;

Entries apt_entries(const bundle::Manifest& manifest) {
  Entries found;
  auto at = std::lower_bound(manifest.entries.begin(), manifest.entries.end(), kAptFolder,
                             [](const bundle::Entry& one, std::string_view path) { return one.path.text() < path; });
  for (; at != manifest.entries.end() && at->path.text().starts_with(kAptFolder); ++at)
    if (at->kind == bundle::EntryKind::File) found.push_back(&*at);
  return found;
}

bool is_here(const bundle::Entry& entry, const AptSource& source) {
  return !entry.absent && entry.encoding == bundle::Encoding::Identity && !source.rotten->contains(entry.path.text());
}

}  // namespace

AptRepositories apt_repositories_of(const std::vector<AptSource>& bundles, std::vector<InBoth>& lines) {
  std::unordered_map<std::string, ServedFile> carried;  // by digest, by whichever bundle
  std::map<std::string, const AptSource*, std::less<>> newest;
  for (const AptSource& source : bundles) {
    const bundle::Manifest& manifest = source.in->manifest();
    const Entries entries = apt_entries(manifest);
    for (const bundle::Entry* entry : entries)
      if (is_here(*entry, source))
        carried.try_emplace(entry->sha256.hex(), served_file(source.in, *entry, "a package"));
    if (entries.empty()) continue;
    const AptSource*& place = newest[manifest.name];
    const auto rank = [](const bundle::Manifest& one) { return std::pair(one.created, one.version); };
    if (place == nullptr || rank(place->in->manifest()) < rank(manifest)) place = &source;
  }
  AptRepositories repositories;
  for (const auto& [name, source] : newest) {
    const bundle::Manifest& manifest = source->in->manifest();
    AptRepository repository{.created = manifest.created, .files = {}};
    for (const bundle::Entry* entry : apt_entries(manifest)) {
      const std::string file = entry->path.text().substr(kAptFolder.size());
      const auto found = carried.find(entry->sha256.hex());
      if (found == carried.end())
        lines.push_back(missing_debian_package(manifest.stem(), file));
      else
        repository.files.emplace(file, found->second);
    }
    const auto index = repository.files.find(kAptIndex);
    if (index == repository.files.end()) continue;  // which apt cannot do without
    repository.files.emplace("by-hash/SHA256/" + index->second.sha256.hex(), index->second);
    repositories.emplace(name, std::move(repository));
  }
  return repositories;
}

}  // namespace sealift::offline_repo
