// SPDX-License-Identifier: Apache-2.0
// How many packets this process's TCP connections sent, and how many of them the network lost.
// Read before and after an exchange by the measurement of pairs.
// The kernel counts for each connection (TCP_INFO): what other programs of the host send again is not in it.
#pragma once

#include <cstdint>
#include <map>

namespace sealift::verify {

/// `lost`: sent again, less the packets that the receiver got twice (DSACK). A busy host that answers late is
/// sent things twice, and a path that reorders too, though nothing was lost.
struct PacketCounts {
  std::int64_t sent = 0, lost = 0;
};

class TcpCounts {
 public:
  /// Of all TCP connections together since the last call; the first call's are those since they began. `lost` may be
  /// below zero, as receivers tell later what they have got twice. Zeros where the kernel does not count.
  PacketCounts take();

 private:
  std::map<std::uint64_t, PacketCounts> known_;  ///< by the socket's inode
};

}  // namespace sealift::verify
