// SPDX-License-Identifier: Apache-2.0
// What the repository answers to a request: everything that it decides, without a socket. All of it is one table, in
// route_table.cpp.
// HEAD gets the same response as GET; the connection leaves out its body.
#pragma once

#include "offline_repo/requests/response.hpp"
#include "offline_repo/views/pages.hpp"

namespace sealift::offline_repo {

// The most bytes of a body that are read for the answer: 0 for almost every request.
std::uint64_t wanted_body(const Catalogue& catalogue, const Pages& pages, const Request& request);

// Throws nothing, whatever a client sends. `pages` are the catalogue's; the response points into both.
Response respond(const Catalogue& catalogue, const Pages& pages, const Request& request);
// The same with pages that are made for this one request; the response points into `catalogue` alone.
Response respond(const Catalogue& catalogue, const Request& request);

}  // namespace sealift::offline_repo
