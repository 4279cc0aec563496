// SPDX-License-Identifier: Apache-2.0
// Asks a running server how it is: the other end of --admin-listen, for `sealift-repo status`.
// One request on one connection, by the system's own calls; what comes back is bounded.
#pragma once

#include <chrono>
#include <string>

#include "offline_repo/server/listen_address.hpp"

namespace sealift::offline_repo {

// The body of a GET that was answered with 200. Throws Network where nobody answers in time, or with something else.
std::string ask_admin(const ListenAddress& admin, const std::string& target, std::chrono::seconds limit);

}  // namespace sealift::offline_repo
