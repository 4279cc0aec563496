// SPDX-License-Identifier: Apache-2.0
// What the checks of collectives send, between whom, and how a time becomes a bandwidth.
// `measure` follows it; `judge` reads the results by it. No LibTorch in it.
// Pure arithmetic, so that a world of a thousand ranks is planned in a test.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sealift::verify {

/// The collectives that training uses and that move data.
inline const std::vector<std::string> kCollectives{"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                                   "all_to_all"};

/// Bus bandwidth in bytes a second of a collective of `ranks` ranks over `bytes` in `seconds`: what each link must have
/// carried, whatever the number of ranks. Formulas and the meaning of `bytes` (of all_gather and all_to_all the whole
/// result, of reduce_scatter the whole input) are those of nccl-tests, doc/PERFORMANCE.md.
inline double bus_bandwidth(const std::string& op, std::int64_t ranks, double bytes, double seconds) {
  const auto n = static_cast<double>(ranks);
  if (seconds <= 0 || ranks < 2) return 0;
  const double algorithm = bytes / seconds;
  if (op == "all_reduce") return algorithm * 2 * (n - 1) / n;
  if (op == "broadcast") return algorithm;
  if (op == "reduce_scatter" || op == "all_gather" || op == "all_to_all") return algorithm * (n - 1) / n;
  throw std::invalid_argument("there is no bus bandwidth of " + op);
}

/// Whole numbers up to this are exact in the dtype: "fp32", "bf16", "fp16" or "int64".
inline std::int64_t exact_below(const std::string& dtype) {
  if (dtype == "bf16") return std::int64_t{1} << 8;
  if (dtype == "fp16") return std::int64_t{1} << 11;
  if (dtype == "fp32") return std::int64_t{1} << 24;
  if (dtype == "int64") return std::int64_t{1} << 40;
  throw std::invalid_argument("no check sends " + dtype);
}

/// The element at `index` of what rank `rank` sends is (rank * kOfRank + index * kOfIndex) modulo this: a prime, so a
/// part in another's place shows unless ranks are equal modulo it.
inline constexpr std::int64_t kOfRank = 1000003, kOfIndex = 7919;
inline std::int64_t modulus_of_moves(const std::string& dtype) {
  if (dtype == "bf16") return 251;
  if (dtype == "fp16") return 2039;
  return dtype == "fp32" ? 16777213 : 1099511627689;
}

/// ... of what is added over `ranks` ranks: so small that every partial sum is exact. 1 or less: too many ranks for
/// the dtype; then only every `one_in`-th adds a 1.
inline std::int64_t modulus_of_sums(const std::string& dtype, std::int64_t ranks) {
  return exact_below(dtype) / std::max<std::int64_t>(1, ranks);
}
inline std::int64_t one_in(const std::string& dtype, std::int64_t ranks) {
  return (4 * ranks + exact_below(dtype) - 1) / exact_below(dtype);
}

/// The two axes of a mesh over `ranks` ranks, the second within a host where hosts have `local` ranks each; else as
/// square as it gets. {ranks, 1} for a prime number.
inline std::pair<std::int64_t, std::int64_t> mesh_of(std::int64_t ranks, std::int64_t local) {
  if (local > 1 && local < ranks && ranks % local == 0) return {ranks / local, local};
  std::int64_t inner = 1;
  for (std::int64_t size = 2; size * size <= ranks; ++size) {
    if (ranks % size == 0) inner = size;
  }
  return {ranks / inner, inner};
}

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// A tournament of `players` (the circle method): rounds of pairs that have nobody in common; after all of them
/// everyone has met everyone. At most `most` rounds.
inline std::vector<Pairs> rounds_of_pairs(std::int64_t players, std::int64_t most) {
  const auto seats = players + players % 2;
  std::vector<Pairs> rounds;
  for (std::int64_t round = 0; round < std::min(most, seats - 1); ++round) {
    Pairs pairs;
    for (std::int64_t i = 0; i < seats / 2; ++i) {
      const auto left = i == 0 ? seats - 1 : (round + i) % (seats - 1);
      const auto right = (round - i + seats - 1) % (seats - 1);
      if (left < players && right < players) pairs.emplace_back(std::min(left, right), std::max(left, right));
    }
    rounds.push_back(std::move(pairs));
  }
  return rounds;
}

}  // namespace sealift::verify
