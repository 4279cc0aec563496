// SPDX-License-Identifier: Apache-2.0
// A network for one run in which every address is this machine's: nothing can leave, and what tries is counted.
// Where calls cannot be watched (watch.hpp), `run` enters one before it starts its ranks, if all are on this host.
// A local route for all addresses needs no second end and no device: a call to the outside is refused by its own
// machine.
#pragma once

#include "verify/egress/watch.hpp"

namespace sealift::verify {

/// Puts this process, which has one thread, and all that it will start into such a network. Says why not where that is
/// not possible; empty: done. `allowed` must be made before, since the addresses of the host are not seen inside.
std::string enter_counted_network();

/// What tries to leave such a network, from now on.
class PacketCount {
 public:
  /// Throws std::runtime_error where packets may not be looked at.
  PacketCount();
  ~PacketCount();
  PacketCount(const PacketCount&) = delete;
  PacketCount& operator=(const PacketCount&) = delete;

  /// The attempts so far that `allowed` does not let out, and look-ups of names that may not be asked; without the
  /// program, which a packet does not name. At most 200; a last one stands for packets that were lost.
  std::vector<Attempt> attempts(const Allowed& allowed);

 private:
  int socket_ = -1;
  std::vector<Attempt> seen_;
};

}  // namespace sealift::verify
