// SPDX-License-Identifier: Apache-2.0
// What rounds of timings say together: how fast a group can be, who seems slow, who comes late again and again.
// The measurement asks it what to time again, the judge whom to name. No LibTorch in it.
// Equals take turns in each round, and a named rank must stand out in all or most of them: other work on a machine
// only adds time, and to somebody else each time.
#pragma once

#include "verify/verdict/outliers.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

namespace sealift::verify {

/// Rounds that are made of everything, and at most of what seems slow in all of them.
inline constexpr std::size_t kRounds = 5, kMostRounds = 10;

/// Seconds, by rank and round.
using SecondsOfRanks = std::vector<std::vector<double>>;

/// A group needs what its slowest rank needs; the best of the rounds that all of them made. 0 of none.
inline double best_round(const SecondsOfRanks& ranks) {
  if (ranks.empty()) return 0;
  auto slowest = ranks.front();
  for (const auto& rounds : ranks) {
    slowest.resize(std::min(slowest.size(), rounds.size()));
    for (std::size_t i = 0; i < slowest.size(); ++i) slowest[i] = std::max(slowest[i], rounds[i]);
  }
  return slowest.empty() ? 0 : *std::min_element(slowest.begin(), slowest.end());
}

/// The lower median: what is held against a slow one must not be slow itself.
inline double usual_seconds(std::vector<double> seconds) {
  if (seconds.empty()) return 0;
  std::sort(seconds.begin(), seconds.end());
  return seconds[(seconds.size() - 1) / 2];
}

/// Less than what any judge calls slow (see all_ranks.cpp): worth another round.
inline bool seems_slow(double seconds, double usual) {
  return seconds > 1.4 * usual && seconds - usual > 0.0005;
}
inline bool one_seems_slow(const std::vector<double>& of_groups) {
  const double usual = usual_seconds(of_groups);
  return std::any_of(of_groups.begin(), of_groups.end(), [&](double seconds) { return seems_slow(seconds, usual); });
}

/// A late rank waits shortly inside, the others long. For each rank that came late by `limit` in four of five rounds:
/// the usual seconds by which it came late. Not in all rounds, since in some another rank may come later still.
inline std::map<std::size_t, double> late_in_most(const SecondsOfRanks& waits, double limit) {
  std::map<std::size_t, std::vector<double>> late;
  std::size_t rounds = waits.empty() ? 0 : waits.front().size();
  for (const auto& of_rank : waits) rounds = std::min(rounds, of_rank.size());
  for (std::size_t round = 0; round < rounds; ++round) {
    std::vector<double> of_round;
    for (const auto& of_rank : waits) of_round.push_back(of_rank[round]);
    const double typical = typical_of(of_round);
    for (std::size_t rank = 0; rank < waits.size(); ++rank) {
      const double wait = waits[rank][round];
      if (typical - wait >= limit && wait <= typical / 2) late[rank].push_back(typical - wait);
    }
  }
  std::map<std::size_t, double> found;
  for (const auto& [rank, seconds] : late) {
    if (seconds.size() * 5 >= rounds * 4) found[rank] = usual_seconds(seconds);
  }
  return found;
}

}  // namespace sealift::verify
