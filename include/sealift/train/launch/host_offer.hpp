// SPDX-License-Identifier: Apache-2.0
// What ranks tell each other of their hosts where they meet: the address at which each is reached, and processors.
// Above `host_share`, which reads a host; `rendezvous` has each rank make its offer, and takes what follows from all.
// What one host sees of itself can be wrong for the others: its own name may lead to its loopback, and an interface may
// be one that each host has by itself. Only together is it known.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/comm/groups.hpp>
#include <sealift/train/launch/address.hpp>
#include <sealift/train/launch/host_share.hpp>
#include <sealift/train/launch/launch.hpp>

namespace sealift::train {

namespace rendezvous {

/// This process, for people: host and process number.
std::string own_name();

/// What a rank says of its host where ranks meet: an address, and what tells its network and its machine from others.
struct Offer {
  std::string address;     ///< where the others are to reach it
  std::string interface;   ///< the interface that was asked for; empty: none was
  std::string network;     ///< host::network; empty: not known, and nothing is said of addresses
  std::string machine;     ///< host::machine; empty: not known
  std::string processors;  ///< that it may run on, as the kernel lists them
};

/// Has the ranks of this rank's machine know its processors.
void offer_processors(c10d::Store& meeting, const Offer& offer);

/// Says where this rank is reached. Returns the problem of an address that another host offers, too; else an empty
/// text.
std::string offer_address(c10d::Store& meeting, const Launch& launch, const Offer& offer);

/// What the last rank sees when all have come: ranks that others do not reach; else an empty text.
std::string unreached(c10d::Store& meeting);

/// The address that ranks of other hosts reach, after all have met: `offer.address`, unless that is of the loopback,
/// where a host's own name leads to; then that of the interface towards a rank of another host.
std::string reached_address(c10d::Store& meeting, const Offer& offer, std::int64_t port);

/// This rank's part of its machine's processors, after all have met; see host::share_of_processors.
double share_of_processors(c10d::Store& meeting, const Launch& launch, const Offer& offer);

}  // namespace rendezvous

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/launch/host_offer_inl.hpp>
#endif
