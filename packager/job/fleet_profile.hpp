// SPDX-License-Identifier: Apache-2.0
// The profile of a fleet: the probes of its machines lie in one folder, and what all of them have is the target. Each
// value that is lower than another machine's is said with the machine that lowers it, so that one old node is noticed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sealift/bundle/manifest/target.hpp"

namespace sealift::packager {

// A machine is called by the name of its file, without ".toml".
struct FleetMachine {
  std::string name;
  bundle::Target target;
};

struct FleetProfile {
  bundle::Target target;
  std::vector<std::string> floors;  // "kernel 4.18 is that of node07; others have up to 6.1"
};

// The lowest versions, the CPU flags, Pythons and libcrypto that all have, the GPUs of any. What a machine does not say
// is not counted; a machine without GPUs is not asked for its driver. Throws Platform when architectures differ.
FleetProfile common_ground(const std::vector<FleetMachine>& machines);

// Of all *.toml files of `folder`. Throws Missing when there are none, and as read_profile does.
FleetProfile read_fleet(const std::filesystem::path& folder);

}  // namespace sealift::packager
