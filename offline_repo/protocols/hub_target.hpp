// SPDX-License-Identifier: Apache-2.0
// What a hub's client asks for, read from the segments of a path: the routes of HF_ENDPOINT, as huggingface_hub 0.20 to
// 2.x asks them. Names are looked up in the catalogue at once, since an id has one part or two and only it can tell.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "offline_repo/catalogue/hub_repositories.hpp"

namespace sealift::offline_repo {

enum class HubRoute {
  Info,       // /api/models/ID[/revision/REV]
  Tree,       // /api/models/ID/tree/REV[/PATH]
  PathsInfo,  // /api/models/ID/paths-info/REV, by POST
  Refs,       // /api/models/ID/refs
  Commits,    // /api/models/ID/commits/REV
  Resolve,    // /ID/resolve/REV/PATH, of a data set /datasets/ID/…
};

struct HubTarget {
  HubRoute route = HubRoute::Info;
  const ServedRepository* repository = nullptr;  // null: nobody carries it
  std::string revision = {};                     // "main" where the path has none
  std::string path = {};                         // without slashes at its ends
};

// Nothing when the path is no hub's; `segments` are decoded.
std::optional<HubTarget> parse_hub_target(const std::vector<std::string>& segments,
                                          const HubRepositories& repositories);

}  // namespace sealift::offline_repo
