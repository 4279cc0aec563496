// SPDX-License-Identifier: Apache-2.0
// Times are compared as texts: RFC 3339 in UTC, in the manifest's one spelling, sorts as it was written.
#include "offline_repo/catalogue/hub_repositories.hpp"

#include <algorithm>
#include <set>

#include "offline_repo/catalogue/not_served.hpp"

namespace sealift::offline_repo {

namespace {

using bundle::Error;
using bundle::ErrorCode;
using InBundle = std::shared_ptr<const bundle::VerifiedBundle>;

std::string catalogue_text(const bundle::VerifiedBundle& in, const bundle::Entry& entry, const std::string& where) {
  if (entry.size > bundle::kMaxHubCatalogue)
    throw Error(ErrorCode::Format, {.what = "the catalogue of hubs is larger than 64 MiB",
                                    .where = where,
                                    .got = std::to_string(entry.size) + " bytes"});
  std::string text;
  text.reserve(entry.size);
  in.stream(entry, [&](bundle::ByteView piece) { text += bundle::as_text(piece); });
  return text;
}

std::string described(const ServedFile& file) {
  return file.in->manifest().stem() + " in " + file.in->folder().string() + ": sha256 " + file.sha256.hex();
}

void add_file(HubCommit& commit, const std::string& path, ServedFile file, const bundle::HubName& name) {
  const auto [place, fresh] = commit.files.try_emplace(path, file);
  if (fresh || place->second.sha256 == file.sha256) return;
  throw Error(ErrorCode::Conflict, {.what = "two bundles have different bytes for a file of one commit",
                                    .where = name.id + "/" + path + " at " + commit.id,
                                    .expected = described(place->second),
                                    .got = described(file),
                                    .next = "each is served by its own address, /b/NAME-VERSION/"});
}

void add_files(HubCommit& commit, const bundle::HubRepository& listed, const InBundle& in,
               const std::set<std::string>& rotten) {
  for (const bundle::HubRepositoryFile& file : listed.files) {
    const bundle::Entry& entry = *in->manifest().find(file.entry);  // parse_hub_catalogue has found it
    if (entry.absent || rotten.contains(entry.path.text()))
      commit.missing.push_back(file.path.text());
    else
      add_file(commit, file.path.text(), served_file(in, entry, "a file of a hub"), listed.name);
  }
}

// A branch of ModelScope moves without a commit, so only the newest bundle says what is on it.
bool is_outdated_branch(const HubCommit& commit, const bundle::HubRepository& listed, const std::string& created) {
  return listed.name.hub == bundle::HubKind::ModelScope && created < commit.created;
}

void add(ServedRepository& repository, const bundle::HubRepository& listed, const InBundle& in,
         const std::set<std::string>& rotten) {
  const std::string& created = in->manifest().created;
  HubCommit& commit = repository.commits.try_emplace(listed.commit, HubCommit{.id = listed.commit}).first->second;
  if (is_outdated_branch(commit, listed, created)) return;
  if (listed.name.hub == bundle::HubKind::ModelScope && created > commit.created) commit = {.id = listed.commit};
  commit.created = std::max(commit.created, created);
  add_files(commit, listed, in, rotten);
  for (const std::string& revision : listed.revisions) {
    NamedCommit& named = repository.revisions.try_emplace(revision, NamedCommit{listed.commit, created}).first->second;
    if (named.created < created) named = {listed.commit, created};
  }
}

}  // namespace

std::vector<HubCommit::Item> HubCommit::list(const std::string& folder, bool recursive) const {
  const std::string prefix = folder.empty() ? "" : folder + "/";
  std::vector<Item> items;
  std::set<std::string> folders;
  for (auto it = files.lower_bound(prefix); it != files.end() && it->first.starts_with(prefix); ++it) {
    const std::string& path = it->first;
    std::size_t slash = path.find('/', prefix.size());
    const bool here = slash == path.npos;
    for (; slash != path.npos; slash = recursive ? path.find('/', slash + 1) : path.npos)
      if (const auto [below, fresh] = folders.insert(path.substr(0, slash)); fresh) items.emplace_back(*below, nullptr);
    if (here || recursive) items.emplace_back(path, &it->second);
  }
  return items;
}

std::string_view ServedRepository::default_branch() const {
  return name.hub == bundle::HubKind::HuggingFace ? "main" : "master";
}

const HubCommit* ServedRepository::find(std::string_view revision) const {
  if (const auto found = commits.find(revision); found != commits.end()) return &found->second;
  if (const auto found = revisions.find(revision); found != revisions.end()) return &commits.at(found->second.id);
  if (revision != default_branch() || commits.empty()) return nullptr;
  const auto older = [](const auto& a, const auto& b) { return a.second.created < b.second.created; };
  return &std::max_element(commits.begin(), commits.end(), older)->second;
}

bundle::HubCatalogue read_hub_repositories(const bundle::VerifiedBundle& in) {
  const bundle::Entry* entry = in.manifest().find(bundle::SafePath::parse(bundle::kHubCatalogueEntry, ""));
  if (entry == nullptr || entry->absent) return {};
  const std::string where = in.manifest().stem() + ":" + entry->path.text();
  return bundle::parse_hub_catalogue(catalogue_text(in, *entry, where), in.manifest(), where);
}

void add_hub_repositories(HubRepositories& repositories, const bundle::HubCatalogue& listed, const InBundle& in,
                          const std::set<std::string>& rotten) {
  for (const bundle::HubRepository& one : listed)
    add(repositories.try_emplace(one.name, ServedRepository{.name = one.name}).first->second, one, in, rotten);
}

std::vector<InBoth> drop_incomplete(HubRepositories& repositories) {
  std::vector<InBoth> lines;
  for (auto& [name, repository] : repositories)
    for (auto it = repository.commits.begin(); it != repository.commits.end();) {
      HubCommit& commit = it->second;
      std::erase_if(commit.missing, [&](const std::string& path) { return commit.files.contains(path); });
      if (commit.missing.empty()) {
        ++it;
        continue;
      }
      lines.push_back(commit_in_part(name.id, commit.id, commit.missing.size(), commit.missing.front()));
      std::erase_if(repository.revisions, [&](const auto& named) { return named.second.id == commit.id; });
      it = repository.commits.erase(it);
    }
  std::erase_if(repositories, [](const auto& item) { return item.second.commits.empty(); });
  return lines;
}

}  // namespace sealift::offline_repo
