// SPDX-License-Identifier: Apache-2.0
// How many descriptors this process may have: each connection is one, each large chunk in memory is one.
// The limit that a shell or a service manager sets at first is for programs that use select(2), not for servers.
#pragma once

#include <cstddef>

#include "offline_repo/server/server_options.hpp"

namespace sealift::offline_repo {

// Raises this process's limit to what it may raise it to, and returns it.
std::size_t raise_descriptor_limit();

// The options with no more connections and memory files than `limit` descriptors allow, `others` of which are for
// volumes and the like. At least 16 connections: below that nothing would work anyway.
ServerOptions within_descriptors(ServerOptions options, std::size_t limit, std::size_t others);

}  // namespace sealift::offline_repo
