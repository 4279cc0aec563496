// SPDX-License-Identifier: Apache-2.0
// There is one spelling: a text that is not what its value is written as is refused, so sorting, merging and bounds
// are said once, by the writer.
#include "sealift/bundle/manifest/hub_catalogue.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "bundle/core/fields_json.hpp"
#include "bundle/core/json.hpp"

namespace sealift::bundle {

namespace {

constexpr std::uint64_t kFormat = 1;
constexpr std::size_t kMaxRepositories = 100'000;
constexpr std::size_t kMaxRevisions = 100;
constexpr std::size_t kMaxParts = 8;  // of a branch's or tag's name
constexpr std::pair<HubKind, std::string_view> kHubs[] = {{HubKind::HuggingFace, "huggingface"},
                                                          {HubKind::ModelScope, "modelscope"}};
constexpr std::pair<RepositoryKind, std::string_view> kKinds[] = {{RepositoryKind::Model, "model"},
                                                                  {RepositoryKind::Dataset, "dataset"}};

bool is_name(std::string_view text, std::size_t max_parts) {
  std::size_t parts = 0;
  for (std::size_t begin = 0; begin <= text.size(); ++parts) {
    const std::size_t end = std::min(text.find('/', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const bool plain = std::all_of(part.begin(), part.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
             c == '.';
    });
    if (part.empty() || part.size() > 96 || part.front() == '.' || !plain) return false;
    begin = end + 1;
  }
  return parts <= max_parts;
}

bool is_commit(std::string_view text) {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == 40 && std::all_of(text.begin(), text.end(), hex);
}

// Null when it may be written.
const char* fault_of(const HubRepository& repository) {
  if (!is_hub_id(repository.name.id)) return "this is not the name of a repository";
  const bool has_commits = repository.name.hub == HubKind::HuggingFace;
  if (has_commits ? !is_commit(repository.commit) : !is_name(repository.commit, kMaxParts))
    return "a commit is 40 hexadecimal digits, or for modelscope a branch or tag";
  if (repository.revisions.size() > kMaxRevisions) return "a repository has more than 100 names of revisions";
  for (const std::string& revision : repository.revisions)
    if (!is_name(revision, kMaxParts) || revision == repository.commit) return "this is not a branch or tag";
  const auto is_file = [&](std::string_view path) {
    const auto before = [](const HubRepositoryFile& a, std::string_view b) { return a.path.text() < b; };
    const auto found = std::lower_bound(repository.files.begin(), repository.files.end(), path, before);
    return found != repository.files.end() && found->path.text() == path;
  };
  for (const HubRepositoryFile& file : repository.files)
    for (std::size_t slash = 0; (slash = file.path.text().find('/', slash)) != std::string::npos; ++slash)
      if (is_file(std::string_view(file.path.text()).substr(0, slash))) return "a file lies below another file";
  return nullptr;
}

[[noreturn]] void throw_two_files(const HubRepository& repository, const HubRepositoryFile& file) {
  throw Error(ErrorCode::Usage, {.what = "one commit of a repository has two files of one path",
                                 .where = repository.name.id + ": " + file.path.text(),
                                 .next = "lock the job again"});
}

// The first of equal paths stays.
void merge_files(HubRepository& into, std::vector<HubRepositoryFile> files) {
  into.files.insert(into.files.end(), std::make_move_iterator(files.begin()), std::make_move_iterator(files.end()));
  std::stable_sort(into.files.begin(), into.files.end(),
                   [](const HubRepositoryFile& a, const HubRepositoryFile& b) { return a.path < b.path; });
  const auto same = [&](const HubRepositoryFile& a, const HubRepositoryFile& b) {
    if (a.path != b.path) return false;
    if (a.sha256 != b.sha256 || a.size != b.size) throw_two_files(into, b);
    return true;
  };
  into.files.erase(std::unique(into.files.begin(), into.files.end(), same), into.files.end());
}

void merge_revisions(HubRepository& into, const std::vector<std::string>& revisions) {
  into.revisions.insert(into.revisions.end(), revisions.begin(), revisions.end());
  std::sort(into.revisions.begin(), into.revisions.end());
  into.revisions.erase(std::unique(into.revisions.begin(), into.revisions.end()), into.revisions.end());
}

HubCatalogue merged(HubCatalogue repositories) {
  std::map<std::pair<HubName, std::string>, HubRepository> all;
  for (HubRepository& one : repositories) {
    HubRepository& place =
        all.try_emplace({one.name, one.commit}, HubRepository{one.name, one.commit, {}, {}}).first->second;
    merge_files(place, std::move(one.files));
    merge_revisions(place, one.revisions);
  }
  HubCatalogue sorted;
  for (auto& [key, repository] : all) {
    if (const char* fault = fault_of(repository))
      throw Error(ErrorCode::Usage, {.what = fault,
                                     .where = SafePath::printable(repository.name.id),
                                     .got = SafePath::printable(repository.commit),
                                     .next = "lock the job again"});
    sorted.push_back(std::move(repository));
  }
  return sorted;
}

HubRepositoryFile parse_file(const Json& json, const Manifest& manifest, const std::string& where) {
  JsonObject object(json, where);
  HubRepositoryFile file{.path = SafePath::parse(object.string("path"), where + ".path"),
                         .entry = SafePath::parse(object.string("entry"), where + ".entry"),
                         .size = object.integer("size", kMaxPayloadSize),
                         .sha256 = object.digest("sha256")};
  object.done();
  const Entry* entry = manifest.find(file.entry);
  if (entry == nullptr || entry->kind != EntryKind::File || entry->size != file.size || entry->sha256 != file.sha256)
    refuse_json(where, "the manifest has no file of this path, size and digest", file.entry.text());
  return file;
}

HubRepository parse_repository(const Json& json, const Manifest& manifest, const std::string& where) {
  JsonObject object(json, where);
  HubRepository repository{.name = {.hub = enum_value(kHubs, object.string("hub", 20), where + ".hub"),
                                    .kind = enum_value(kKinds, object.string("kind", 20), where + ".kind"),
                                    .id = object.string("id", 200)},
                           .commit = object.string("commit", 1000),
                           .revisions = {},
                           .files = {}};
  for (const Json& item : object.array("revisions", kMaxRevisions))
    repository.revisions.push_back(item.is_string() ? item.get<std::string>() : "");
  for (const Json& item : object.array("files", kMaxJsonValues))
    repository.files.push_back(parse_file(item, manifest, where + ".files"));
  object.done();
  return repository;
}

}  // namespace

bool is_hub_id(std::string_view text) {
  return is_name(text, 2);
}

std::string write_hub_catalogue(HubCatalogue repositories) {
  Json list = Json::array();
  for (const HubRepository& one : merged(std::move(repositories))) {
    Json files = Json::array();
    for (const HubRepositoryFile& file : one.files)
      files.push_back({{"path", file.path.text()},
                       {"entry", file.entry.text()},
                       {"size", file.size},
                       {"sha256", file.sha256.hex()}});
    list.push_back({{"hub", enum_name(kHubs, one.name.hub)},
                    {"kind", enum_name(kKinds, one.name.kind)},
                    {"id", one.name.id},
                    {"commit", one.commit},
                    {"revisions", one.revisions},
                    {"files", std::move(files)}});
  }
  return write_json({{"format", kFormat}, {"repositories", std::move(list)}}) + "\n";
}

HubCatalogue parse_hub_catalogue(std::string_view text, const Manifest& manifest, const std::string& where) {
  if (text.size() > kMaxHubCatalogue) refuse_json(where, "it is larger than 64 MiB", std::to_string(text.size()));
  const Json root = parse_json(text, where);
  JsonObject object(root, where);
  if (const std::uint64_t format = object.integer("format"); format != kFormat)
    throw Error(ErrorCode::CannotCheck, {.what = "the catalogue of hubs is of a format that this version does not know",
                                         .where = where,
                                         .expected = std::to_string(kFormat),
                                         .got = std::to_string(format),
                                         .next = "use a newer sealift-repo"});
  HubCatalogue catalogue;
  for (const Json& json : object.array("repositories", kMaxRepositories))
    catalogue.push_back(parse_repository(json, manifest, where + ".repositories"));
  object.done();
  try {
    if (write_hub_catalogue(catalogue) != text) refuse_json(where, "it is not sorted, or not in its one spelling");
  } catch (const Error& error) {
    if (error.code() != ErrorCode::Usage) throw;
    refuse_json(where, error.facts().what, error.facts().where);
  }
  return catalogue;
}

}  // namespace sealift::bundle
