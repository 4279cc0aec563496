// SPDX-License-Identifier: Apache-2.0
// What clients of container registries are answered: containerd, Docker, podman, skopeo, oras, Harbor. Images of the
// bundles' signed lists, and each bundle itself.
#pragma once

#include <string_view>

#include "offline_repo/requests/request_target.hpp"
#include "offline_repo/requests/response.hpp"

namespace sealift::offline_repo {

// Whether a client of a registry sent this target, which is not decoded.
bool is_registry_target(std::string_view target);

Response registry_error(unsigned status, std::string_view code, const std::string& why);

// For a target whose first segment is "v2". The response points into `catalogue`.
Response registry_answer(const Catalogue& catalogue, const Request& request, const Target& target);

}  // namespace sealift::offline_repo
