// SPDX-License-Identifier: Apache-2.0
// ModelScope's routes for models: what its client asks by GET, and the documents that it reads. Data sets are asked for
// by numbers there and are not carried.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "offline_repo/catalogue/hub_repositories.hpp"

namespace sealift::offline_repo {

enum class ModelScopeRoute {
  Info,       // /api/v1/models/ORG/NAME
  Revisions,  // …/revisions
  Files,      // …/repo/files?Revision=&Recursive=&Root=
  File,       // …/repo?Revision=&FilePath=
};

struct ModelScopeTarget {
  ModelScopeRoute route = ModelScopeRoute::Info;
  const ServedRepository* repository = nullptr;  // null: nobody carries it
};

// Nothing when the path is none of these; `segments` are decoded.
std::optional<ModelScopeTarget> parse_modelscope_target(const std::vector<std::string>& segments,
                                                        const HubRepositories& repositories);

std::string modelscope_info_json(const ServedRepository& repository);
// Branches; clients look for the one that they want, and for when it was made.
std::string modelscope_revisions_json(const ServedRepository& repository);
// Files and folders below the folder `root` ("": all), those of folders below it where `recursive`. Nothing unless
// `root` is a folder.
std::optional<std::string> modelscope_files_json(const HubCommit& commit, const std::string& root, bool recursive);
std::string modelscope_error_json(const std::string& why);

}  // namespace sealift::offline_repo
