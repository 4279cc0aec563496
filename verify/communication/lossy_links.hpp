// SPDX-License-Identifier: Apache-2.0
// Which links between nodes lose packets.
// A part of the judging of pairs.
// Times do not tell it: TCP repairs a loss, and the best of some exchanges may have had none.
#pragma once

#include "verify/conduct/check_kind.hpp"
#include "verify/conduct/culprits.hpp"

#include <optional>

namespace sealift::verify {

/// A link loses packets if this share of them was lost, this many, in this many exchanges. A healthy network between
/// hosts of one rate stays far below: who fills a switch's buffer loses some in one burst, and then keeps below it.
inline constexpr double kLostShare = 0.002;
inline constexpr std::int64_t kLostPackets = 8, kLosingExchanges = 3;
/// Packets of 1,460 bytes that a kernel joins into one of at most 64 KiB, and drops as one.
inline constexpr std::int64_t kMostJoined = 45;

/// Reads "packets" of the measurements (see judge_pairs): says in `check` how many were counted and what was lost, and
/// accuses a node that loses them with most of the others, then pairs. True if packets were counted. What the
/// receiver's own kernel dropped meanwhile is not lost on the way.
bool find_lossy_links(const std::vector<Measured>& all, const std::vector<Phrase>& nodes, Culprits& culprits,
                      Check& check);

/// Where a link would lose too many packets if hosts had not dropped them themselves: which, and how many. Nothing is
/// known of that link.
std::optional<Phrase> dropped_at_hosts(const std::vector<Measured>& all, const std::vector<Phrase>& nodes);

}  // namespace sealift::verify
