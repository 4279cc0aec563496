// SPDX-License-Identifier: Apache-2.0
// What the kernel says of this host: processors, memory, limits, InfiniBand, space.
// Measured by machine.host.
// Files of /proc and /sys below a root that is given, so that a test makes a machine.
#pragma once

#include "verify/conduct/site.hpp"

namespace sealift::verify {

/// {"cpu", "governors", "kernel", "glibc": text; "cpus", "numa_nodes", "huge_pages", "memory_gib", "shm_mib",
/// "shm_free_mib", "locked_mib" (-1: unlimited), "free_gib", "ranks": numbers; "gpudirect", "nvidia": whether; "numa":
/// [{"node", "cpus": whether, "gib"}]; "ports": [{"name", "state", "physical", "rate" Gb/s, "width" lanes}]}.
nlohmann::json read_host(const std::filesystem::path& root, const Site& site);

}  // namespace sealift::verify
