// SPDX-License-Identifier: Apache-2.0
// The variables that a bundle of these packages sets: NAME=VALUE lines, for tests that try them.
//   settings_of PYTHON NAME==VERSION...
#include <cstdio>

#include "packager/python/offline_breakers.hpp"
#include "packager/python/run_time_caches.hpp"

using namespace sealift::packager;

int main(int argc, char** argv) {
  std::vector<LockedWheel> wheels;
  for (int i = 2; i < argc; ++i) {
    const std::string text = argv[i];
    const std::size_t equals = text.find("==");
    if (argc < 3 || equals == text.npos) return 2;
    wheels.push_back(
        {.name = text.substr(0, equals), .version = text.substr(equals + 2), .file_name = {}, .url = {}, .sha256 = {}});
  }
  for (const std::string& setting : offline_settings(offline_findings(wheels))) std::puts(setting.c_str());
  for (const auto& [name, value] : cache_variables(wheels, argv[1]))
    std::printf("%s=%s\n", name.c_str(), value.c_str());
  return 0;
}
