// SPDX-License-Identifier: Apache-2.0
// Reads /proc/cpuinfo.
// See processor_kind.hpp.
// Of several processors the first: a host's are alike.
#include "verify/conduct/processor_kind.hpp"

#include <fstream>
#include <map>

namespace sealift::verify {

std::string processor_kind(const std::string& vector_units) {
  std::map<std::string, std::string> first;
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    if (begin != std::string::npos) first.emplace(key, line.substr(begin));
  }
  auto name = first.contains("model name") ? first["model name"] : std::string("a processor without a name");
  for (const char* key : {"cpu family", "model", "CPU implementer", "CPU part"}) {
    if (first.contains(key)) name += std::string(", ") + key + " " + first[key];
  }
  const auto units = " " + first["flags"] + " " + first["Features"] + " ";
  for (const char* unit : {"avx2", "avx512f", "avx512_bf16", "amx_tile", "sve"}) {
    if (units.find(std::string(" ") + unit + " ") != std::string::npos) name += std::string(" ") + unit;
  }
  return vector_units.empty() ? name : name + ", " + vector_units;
}

}  // namespace sealift::verify
