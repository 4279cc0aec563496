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

constexpr std::pair<const char*, ModelScopeRoute> kScopeWords[] = {{"", ModelScopeRoute::Info},
                                                                   {"revisions", ModelScopeRoute::Revisions},
                                                                   {"repo/files", ModelScopeRoute::Files},
                                                                   {"repo", ModelScopeRoute::File}};

std::string enveloped(Json data) {
  return bundle::write_json({{"Code", 200}, {"Success", true}, {"Message", "success"}, {"Data", std::move(data)}});
}

// Clients keep a file under its revision, so it has to change with the bytes.
Json item_json(const std::string& path, const ServedFile* file) {
  Json item = {{"Path", path},
               {"Name", path.substr(path.rfind('/') + 1)},
               {"Type", file != nullptr ? "blob" : "tree"},
               {"Size", file != nullptr ? file->size : 0}};
  if (file == nullptr) return item;
  item["Sha256"] = file->sha256.hex();
  item["Revision"] = file->sha256.hex().substr(0, 40);
  return item;
}

}  // namespace

std::optional<ModelScopeTarget> parse_modelscope_target(const std::vector<std::string>& segments,
                                                        const HubRepositories& repositories) {
  if (segments.size() < 5 || segments.size() > 7 || segments[0] != "api" || segments[1] != "v1" ||
      segments[2] != "models")
    return std::nullopt;
  const auto found = repositories.find({.hub = bundle::HubKind::ModelScope, .id = segments[3] + "/" + segments[4]});
  ModelScopeTarget target{.repository = found != repositories.end() ? &found->second : nullptr};
  std::string rest;
  for (std::size_t i = 5; i < segments.size(); ++i) rest += (i > 5 ? "/" : "") + segments[i];
  for (const auto& [word, route] : kScopeWords) {
    target.route = route;
    if (rest == word) return target;
  }
  return std::nullopt;
}

std::string modelscope_info_json(const ServedRepository& repository) {
  const std::string& id = repository.name.id;
  const std::size_t slash = id.find('/');
  return enveloped({{"Path", id.substr(0, slash)},
                    {"Name", id.substr(slash + 1)},
                    {"Revision", repository.default_branch()},
                    {"Visibility", 5}});
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

std::optional<std::string> modelscope_files_json(const HubCommit& commit, const std::string& root, bool recursive) {
  Json files = Json::array();
  for (const auto& [path, file] : commit.list(root, recursive)) files.push_back(item_json(path, file));
  if (files.empty() && !root.empty()) return std::nullopt;
  return enveloped({{"Files", std::move(files)}});
}

std::string modelscope_error_json(const std::string& why) {
  return bundle::write_json({{"Code", 404}, {"Success", false}, {"Message", why}});
}

}  // namespace sealift::offline_repo
