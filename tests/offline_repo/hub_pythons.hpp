// SPDX-License-Identifier: Apache-2.0
// The Pythons with clients of hubs that the tests start: the current client, and older ones that sites still have.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/clients.hpp"
#include "tests/support/left_out.hpp"

namespace sealift::test {

// A Python that has a hub's client, and where its modules are beside its own.
struct ClientPython {
  std::string program, modules = {};
};

// The version in tests/train/peers.txt; SEALIFT_HUB_PYTHON names a Python that has another version.
inline ClientPython hub_python() {
  if (const char* named = std::getenv("SEALIFT_HUB_PYTHON")) return {named};
  if (std::filesystem::exists(SEALIFT_PEERS "/huggingface_hub") && std::filesystem::exists(SEALIFT_PEERS_PYTHON))
    return {SEALIFT_PEERS_PYTHON, SEALIFT_PEERS};
  sealift::test::left_out("this machine has no " SEALIFT_PEERS "/huggingface_hub");
  return {};
}

// The one of cmake/prerequisites.sh and the older ones that sites still have, as far as they are here.
inline std::vector<ClientPython> with_older(const ClientPython& current, const std::string& package,
                                            const std::vector<std::string>& versions) {
  std::vector<ClientPython> all;
  if (!current.program.empty()) all.push_back(current);
  for (const std::string& version : versions)
    if (const std::string python = client("../../older/" + package + "-" + version + "/bin/python"); !python.empty())
      all.push_back({python});
  return all;
}

}  // namespace sealift::test
