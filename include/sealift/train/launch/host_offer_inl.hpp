// SPDX-License-Identifier: Apache-2.0
// The bodies of host_offer.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/launch/host_offer.hpp>

#include <unistd.h>

namespace sealift::train {

namespace rendezvous {

SEALIFT_BODY std::string own_name() {
  char host[256] = {};
  const bool named = gethostname(host, sizeof host - 1) == 0;
  return c10::str(named ? host : "unknown host", " process ", getpid());
}

SEALIFT_BODY void offer_processors(c10d::Store& meeting, const Offer& offer) {
  if (offer.machine.empty() || offer.processors.empty()) return;
  const auto nth = meeting.add("machine/" + offer.machine, 1);
  meeting.set(c10::str("machine/", offer.machine, "/", nth), offer.processors);
}

SEALIFT_BODY std::string offer_address(c10d::Store& meeting, const Launch& launch, const Offer& offer) {
  if (offer.network.empty()) return {};
  const auto own = c10::str("rank ", launch.rank, ", ", own_name());
  const auto first = meeting.compareSet("network", std::string(), offer.network);
  if (first != offer.network) meeting.set("networks", std::string("several"));
  if (launchers::is_loopback(offer.address)) {
    if (!offer.interface.empty()) meeting.compareSet("kept on loopback", std::string(), own);
    return {};
  }
  const auto mine = offer.network + "\n" + own;
  const auto holder = meeting.compareSet("address/" + offer.address, std::string(), mine);
  meeting.compareSet("outside", std::string(), offer.address);
  if (holder.substr(0, holder.find('\n')) == offer.network) return {};
  return c10::str(holder.substr(holder.find('\n') + 1), " and ", own,
                  " are on different hosts and offer the others one ", "address, ", offer.address,
                  offer.interface.empty() ? std::string() : ", of GLOO_SOCKET_IFNAME '" + offer.interface + "'",
                  ": a network that each host has by itself, as docker0 is; set GLOO_SOCKET_IFNAME to the interface ",
                  "that leads to the other hosts (`ip -br address` lists them), or MASTER_ADDR to an address there");
}

SEALIFT_BODY std::string unreached(c10d::Store& meeting) {
  if (!meeting.check({"networks"})) return {};
  if (meeting.check({"kept on loopback"})) {
    return c10::str(meeting.get_to_str("kept on loopback"),
                    " listens on the loopback, as GLOO_SOCKET_IFNAME says, which ",
                    "ranks of other hosts do not reach; name the interface that leads to them, or unset it");
  }
  if (meeting.check({"outside"})) return {};
  return "the ranks are on different hosts, and MASTER_ADDR leads each to its own loopback; set it to the address of "
         "rank 0's host that the others reach";
}

SEALIFT_BODY std::string reached_address(c10d::Store& meeting, const Offer& offer, std::int64_t port) {
  if (!launchers::is_loopback(offer.address) || !meeting.check({"networks"})) return offer.address;
  return local_address_towards(meeting.get_to_str("outside"), port);
}

SEALIFT_BODY double share_of_processors(c10d::Store& meeting, const Launch& launch, const Offer& offer) {
  std::vector<std::string> all;
  const auto count = offer.machine.empty() || offer.processors.empty() ? 0 : meeting.add("machine/" + offer.machine, 0);
  for (std::int64_t nth = 1; nth <= count; ++nth) {
    all.push_back(meeting.get_to_str(c10::str("machine/", offer.machine, "/", nth)));
  }
  return host::share_of_processors(offer.processors, all, launch.local_world_size, host::quota());
}

}  // namespace rendezvous

}  // namespace sealift::train
