// SPDX-License-Identifier: Apache-2.0
// The kernel's own counts of what it dropped.
// See host_drops.hpp.
// softnet_stat has a row for each processor, in hexadecimal; netstat has pairs of rows, names and values.
#include "verify/communication/host_drops.hpp"

#include <array>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace sealift::verify {
namespace {

constexpr std::array<std::string_view, 4> kNoRoom{"TCPBacklogDrop", "TCPRcvQDrop", "RcvPruned", "OfoPruned"};

std::int64_t dropped_by_processors(std::istream& softnet) {
  std::int64_t dropped = 0;
  for (std::string line; std::getline(softnet, line);) {
    std::istringstream words(line);
    std::int64_t processed = 0, of_processor = 0;
    if (words >> std::hex >> processed >> of_processor) dropped += of_processor;
  }
  return dropped;
}

std::int64_t dropped_by_sockets(std::istream& netstat) {
  std::int64_t dropped = 0;
  for (std::string names, values; std::getline(netstat, names) && std::getline(netstat, values);) {
    std::istringstream each_name(names), each_value(values);
    std::string name, value;
    if (!(each_name >> name && each_value >> value) || name != "TcpExt:") continue;
    for (std::int64_t count = 0; each_name >> name && each_value >> count;) {
      for (const auto known : kNoRoom) dropped += name == known ? count : 0;
    }
  }
  return dropped;
}

}  // namespace

std::int64_t dropped_by_host(const std::filesystem::path& files) {
  std::ifstream softnet(files / "softnet_stat"), netstat(files / "netstat");
  return dropped_by_processors(softnet) + dropped_by_sockets(netstat);
}

}  // namespace sealift::verify
