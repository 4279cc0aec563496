// SPDX-License-Identifier: Apache-2.0
// Packets that reached a host and that its own kernel dropped.
// Read around each exchange by the measurement of pairs, so that a link is not accused of them.
// The counts are the whole host's, so other programs' packets are in them: they excuse, and accuse nobody.
#pragma once

#include <cstdint>
#include <filesystem>

namespace sealift::verify {

/// Since the host began: packets dropped because no processor took them in time (softnet_stat), or because a socket had
/// no room (TcpExt in netstat). `files`: the kernel's, of this network namespace. A file or a name that is absent
/// counts as 0.
std::int64_t dropped_by_host(const std::filesystem::path& files = "/proc/net");

}  // namespace sealift::verify
