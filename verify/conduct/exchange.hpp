// SPDX-License-Identifier: Apache-2.0
// What ranks say to each other around a check, through c10d's store.
// Between connecting and `conduct`.
// The store and not a collective, so that a check of the collectives themselves cannot break it.
#pragma once

#include "verify/conduct/conduct.hpp"

#include <sealift/train.hpp>

namespace sealift::verify {

/// A rank of which nothing is heard: it was stopped, has ended, or its host is lost.
struct RankSilent : std::runtime_error {
  RankSilent(std::int64_t which, std::string when, const std::string& what)
      : std::runtime_error(what), rank(which), since(std::move(when)) {}
  std::int64_t rank;
  std::string since;  ///< UTC
};

/// Told on rank 0, when `signal` tells it to end, of ranks that had ended before.
using Lost = std::function<void(const std::vector<std::int64_t>& ranks, int signal)>;

/// An exchange over `world.store`. Each rank says every second that it is there; one of which nothing is heard for a
/// minute, or `patience` if that is less, is a RankSilent. One that is there and does not come within `patience` of the
/// first is named in a c10::Error. While there is one, a signal of kEndingSignals ends this process within seconds:
/// ranks say farewell, `lost` is told of silent ones, and `last` is called.
Exchange over_store(const train::World& world, std::chrono::seconds patience, Lost lost = {},
                    std::function<void()> last = {});

}  // namespace sealift::verify
