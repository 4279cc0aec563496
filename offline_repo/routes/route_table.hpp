// SPDX-License-Identifier: Apache-2.0
// All that the server answers, as one table, and which of its rows a request is for.
#pragma once

#include <span>

#include "offline_repo/routes/route.hpp"

namespace sealift::offline_repo {

std::span<const Route> all_routes();

// The first row whose path fits, with what the path names filled in; null when there is none.
const Route* find_route(Asked& asked);

// The row of a page about the site itself, which belongs to no bundle; null for any other target.
const Route* find_site_route(const Request& request);

}  // namespace sealift::offline_repo
