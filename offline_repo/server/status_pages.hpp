// SPDX-License-Identifier: Apache-2.0
// /healthz, /metrics and /status: what operators ask it. They show state, so routes.hpp, which is
// pure, does not have them.
#pragma once

#include <optional>

#include "offline_repo/requests/response.hpp"
#include "offline_repo/server/server_state.hpp"

namespace sealift::offline_repo {

// Nothing for any other target. A look at health reads one chunk of the next volume, at most once in five seconds, so
// a disc that was taken out is noticed even when nobody fetches from it. /status, which `sealift-repo status` prints,
// is for `admin` alone, since it names every bundle.
std::optional<Response> status_answer(ServerState& state, const Request& request, bool admin);

}  // namespace sealift::offline_repo
