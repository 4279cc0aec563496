// SPDX-License-Identifier: Apache-2.0
// What clients of container registries are answered: containerd, Docker, podman, skopeo, oras, Harbor. Images of the
// bundles' signed lists, and each bundle itself.
#pragma once

#include <string_view>

#include "offline_repo/routes/route.hpp"

namespace sealift::offline_repo {

// Whether a client of a registry sent this target, which is not decoded.
bool is_registry_target(std::string_view target);

Response registry_error(unsigned status, std::string_view code, const std::string& why);

Response registry_read_only();
Response no_registry_route(const Asked& asked);

Response registry_base(const Asked& asked);
// Names of repositories, and tags of one; ?n= and ?last= ask for a part.
Response registry_catalog(const Asked& asked);
Response registry_tags(const Asked& asked);
// By tag or digest; a blob by digest alone.
Response registry_manifest(const Asked& asked);
Response registry_blob(const Asked& asked);
// None, of whatever is asked.
Response registry_referrers(const Asked& asked);

}  // namespace sealift::offline_repo
