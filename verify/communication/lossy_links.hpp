// SPDX-License-Identifier: Apache-2.0
// Which links between nodes lose packets.
// A part of the judging of pairs.
// Times do not tell it: TCP repairs a loss, and the best of some exchanges may have had none.
#pragma once

#include "verify/conduct/check_kind.hpp"
#include "verify/conduct/culprits.hpp"

namespace sealift::verify {

/// A link loses packets if this share of them was lost, this many, in this many exchanges. A healthy network between
/// hosts of one rate stays far below: who fills a switch's buffer loses some in one burst, and then keeps below it.
inline constexpr double kLostShare = 0.002;
inline constexpr std::int64_t kLostPackets = 8, kLosingExchanges = 3;

/// Reads "packets" of the measurements (see judge_pairs): says in `check` how many were counted and what was lost, and
/// accuses a node that loses them with most of the others, then pairs. True if packets were counted.
bool find_lossy_links(const std::vector<Measured>& all, const std::vector<Phrase>& nodes, Culprits& culprits,
                      Check& check);

}  // namespace sealift::verify
