// SPDX-License-Identifier: Apache-2.0
// Every document stands in an envelope of Code, Success, Message and Data.
#include "offline_repo/protocols/modelscope.hpp"

#include <set>
#include <utility>

#include "bundle/core/json.hpp"
#include "sealift/bundle/core/time.hpp"

namespace sealift::offline_repo {

namespace {

using bundle::Json;

using bundle::RepositoryKind;

constexpr int kGeneralData = 4;  // a data set of plain files; the hub has kinds of its own besides

std::string enveloped(Json data) {
  return bundle::write_json({{"Code", 200}, {"Success", true}, {"Message", "success"}, {"Data", std::move(data)}});
}

// Clients keep a file under its revision, so it has to change with the bytes. They ask folders for a digest, too.
Json item_json(const std::string& path, const ServedFile* file) {
  const std::string digest = file != nullptr ? file->sha256.hex() : "";
  return {{"Path", path},
          {"Name", path.substr(path.rfind('/') + 1)},
          {"Type", file != nullptr ? "blob" : "tree"},
          {"Size", file != nullptr ? file->size : 0},
          {"Sha256", digest},
          {"Revision", digest.substr(0, 40)}};
}

// `otherwise` where the text is empty.
std::optional<std::uint64_t> scope_number(const std::string& text, std::uint64_t otherwise) {
  if (text.empty()) return otherwise;
  std::uint64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || text.size() > 9) return std::nullopt;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return number > 0 ? std::optional(number) : std::nullopt;
}

}  // namespace

// The hub names a data set by a number, too. Clients do nothing with it but put it into an address where the name would
// do as well, so it is the name.
std::string modelscope_info_json(const ServedRepository& repository) {
  const std::string& id = repository.name.id;
  const std::size_t slash = id.find('/');
  Json info = {{"Path", id.substr(0, slash)},
               {"Name", id.substr(slash + 1)},
               {"Revision", repository.default_branch()},
               {"Visibility", 5}};
  if (repository.name.kind == RepositoryKind::Dataset) {
    info["Id"] = id;
    info["Type"] = kGeneralData;
  }
  return enveloped(std::move(info));
}

std::string modelscope_revisions_json(const ServedRepository& repository) {
  std::set<std::string> names = {std::string(repository.default_branch())};
  for (const auto& [name, commit] : repository.commits) names.insert(name);
  Json branches = Json::array();
  for (const std::string& name : names) {
    const std::optional<bundle::Time> created = bundle::parse_time(repository.find(name)->created);
    branches.push_back({{"Revision", name}, {"CreatedAt", created ? created->time_since_epoch().count() : 0}});
  }
  return enveloped({{"RevisionMap", {{"Branches", std::move(branches)}, {"Tags", Json::array()}}}});
}

std::optional<ModelScopePage> modelscope_page(const std::string& number, const std::string& size) {
  const std::optional<std::uint64_t> page = scope_number(number, 1), items = scope_number(size, 0);
  if (!page || !items) return std::nullopt;
  return ModelScopePage{.number = *page, .size = *items};
}

std::optional<std::string> modelscope_files_json(const HubCommit& commit, const std::string& root, bool recursive,
                                                 const ModelScopePage& page) {
  const std::vector<HubCommit::Item> items = commit.list(root, recursive);
  if (items.empty() && !root.empty()) return std::nullopt;
  const std::uint64_t size = page.size == 0 ? items.size() : page.size;
  Json files = Json::array();
  for (std::uint64_t i = (page.number - 1) * size; i < items.size() && i < page.number * size; ++i)
    files.push_back(item_json(items[i].first, items[i].second));
  return enveloped({{"Files", std::move(files)}});
}

std::string modelscope_error_json(const std::string& why) {
  return bundle::write_json({{"Code", 404}, {"Success", false}, {"Message", why}});
}

}  // namespace sealift::offline_repo
