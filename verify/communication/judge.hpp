// SPDX-License-Identifier: Apache-2.0
// What all ranks saw of the collectives: whose data is wrong, which link or rank is slow or late.
// The judging half of this room's checks: measurements in, outcome, names and pictures out.
// Pure functions without LibTorch, so that tests feed them any world.
#pragma once

#include "verify/conduct/check_kind.hpp"

namespace sealift::verify {

/// Judges {"cases", "facts": [[name, value], each {"en", "zh"}], "faults": [{"group", "ranks", "op", "dtype", "size",
/// "index", "from", "got", "expected"}]}; `from`: the rank of the world whose part was wrong, -1 for a sum; `ranks`: of
/// the group.
void judge_right(const std::vector<Measured>& all, Check& check);

/// Judges {"cpu", "facts", "curves": [{"group", "members", "op", "points": [[bytes, [seconds of each round]]]}],
/// "waits": seconds inside the smallest all_reduce, by round, "barrier": seconds, "processors"}: bus bandwidth over
/// each group, held to [communication.at_least_gb] of `expected` by collective; groups of one axis to each other; and
/// the rank for which the others wait. "processors" as Processors::taken: what is slow beside other work is NOT RUN.
void judge_bandwidth(const std::vector<Measured>& all, const nlohmann::json& expected, Check& check);

/// Judges {"cpu", "hosts", "nodes": names, "facts", "pairs": [[one, other, bytes, seconds, seconds of the slowest]],
/// "packets": [[from, to, sent, lost, exchanges that lost, exchanges, dropped by from's kernel meanwhile]], "faults",
/// "processors"}: bandwidth between nodes in each direction at once, held to each other and to `pair` of
/// [communication.at_least_gb]; between hosts also what was lost.
void judge_pairs(const std::vector<Measured>& all, const nlohmann::json& expected, Check& check);

}  // namespace sealift::verify
