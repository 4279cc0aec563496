// SPDX-License-Identifier: Apache-2.0
// A name for each host of a run that no other host of it has: what checks name, count and group ranks by.
// Between connecting and the list of machines in `run`.
// A hostname is no identity: containers of one image and cloned virtual machines bear the same.
#pragma once

#include <string>
#include <vector>

namespace sealift::verify {

/// This host, as a rank sees it: its hostname, and a text that other hosts do not have (the boot, the network
/// namespace, IPv4 addresses but the loopback's).
struct HostSeen {
  std::string hostname, identity;
};
HostSeen see_host();

/// A name for each rank's host: its hostname; where hosts share one, "NAME#1", "NAME#2" in the order of their ranks.
std::vector<std::string> names_of_hosts(const std::vector<HostSeen>& of_ranks);

}  // namespace sealift::verify
