// SPDX-License-Identifier: Apache-2.0
// Asks the kernel about each socket of this process.
// See tcp_counts.hpp.
// Not /proc/net/snmp, which counts the whole host's connections: a file server's loss is no loss of training.
#include "verify/communication/tcp_counts.hpp"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <optional>

namespace sealift::verify {
namespace {

namespace fs = std::filesystem;

/// Since the connection began; nothing if it is no TCP, or the kernel (before 4.19) does not tell all of it.
std::optional<PacketCounts> counts_of(int socket) {
  int protocol = 0;
  socklen_t size = sizeof protocol;
  if (getsockopt(socket, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0 || protocol != IPPROTO_TCP) return {};
  tcp_info info{};
  size = sizeof info;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  if (size < offsetof(tcp_info, tcpi_dsack_dups) + sizeof info.tcpi_dsack_dups) return {};
  return PacketCounts{info.tcpi_data_segs_out,
                      static_cast<std::int64_t>(info.tcpi_total_retrans) - info.tcpi_dsack_dups};
}

}  // namespace

PacketCounts TcpCounts::take() {
  PacketCounts since;
  std::map<std::uint64_t, PacketCounts> now;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd", none)) {
    const int file = std::atoi(entry.path().filename().c_str());
    struct stat about {};
    if (fstat(file, &about) != 0 || !S_ISSOCK(about.st_mode)) continue;
    const auto counts = counts_of(file);
    if (!counts || !now.emplace(about.st_ino, *counts).second) continue;
    const auto before = known_.find(about.st_ino);
    since.sent += counts->sent - (before == known_.end() ? 0 : before->second.sent);
    since.lost += counts->lost - (before == known_.end() ? 0 : before->second.lost);
  }
  known_ = std::move(now);
  return since;
}

}  // namespace sealift::verify
