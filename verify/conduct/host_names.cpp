// SPDX-License-Identifier: Apache-2.0
// What tells hosts apart, and their names.
// See host_names.hpp.
// Clones of a running machine share its boot, and differ in their addresses; containers share both where they share the
// host's network, and then they are one host to every check.
#include "verify/conduct/host_names.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

namespace sealift::verify {
namespace {

std::string ipv4_addresses() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "";
  std::set<std::string> texts;  // in the order of the text, whatever the kernel's
  for (const ifaddrs* one = all; one; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN];
    if (inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text, sizeof text)) {
      texts.emplace(text);
    }
  }
  freeifaddrs(all);
  std::string joined;
  for (const auto& text : texts) joined += text.starts_with("127.") ? "" : " " + text;
  return joined;
}

}  // namespace

HostSeen see_host() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  std::string boot;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::getline(file, boot);
  struct stat network {};
  const bool known = stat("/proc/self/ns/net", &network) == 0;
  return {name, boot + " " + (known ? std::to_string(network.st_ino) : "") + ipv4_addresses()};
}

std::vector<std::string> names_of_hosts(const std::vector<HostSeen>& of_ranks) {
  std::map<std::string, std::vector<std::string>> identities;  // of each hostname, in the order of ranks
  for (const auto& [hostname, identity] : of_ranks) {
    auto& known = identities[hostname];
    if (std::find(known.begin(), known.end(), identity) == known.end()) known.push_back(identity);
  }
  std::vector<std::string> names;
  for (const auto& [hostname, identity] : of_ranks) {
    const auto& known = identities.at(hostname);
    const auto number = std::find(known.begin(), known.end(), identity) - known.begin() + 1;
    names.push_back(known.size() == 1 ? hostname : hostname + "#" + std::to_string(number));
  }
  return names;
}

}  // namespace sealift::verify
