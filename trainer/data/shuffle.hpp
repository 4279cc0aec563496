// SPDX-License-Identifier: Apache-2.0
// A permutation drawn from a seed: the order of an epoch.
// For the sampler; every rank computes it for itself and must get the same one.
// Own arithmetic (SplitMix64, doi:10.1145/2660193.2660195; Lemire's bounded draw, arXiv:1805.10941), since what
// std::shuffle does with a generator differs between standard libraries.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace sealift::trainer {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  /// Uniform in [0, bound); bound > 0.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t uneven = -bound % bound;  // so many of 2^64 values would favour the low results
    for (;;) {
      const auto product = static_cast<unsigned __int128>(next()) * bound;
      if (static_cast<std::uint64_t>(product) >= uneven) return static_cast<std::uint64_t>(product >> 64);
    }
  }

 private:
  std::uint64_t state_;
};

/// A seed of its own for each use and epoch of one seed.
inline std::uint64_t seed_of(std::uint64_t seed, std::uint64_t epoch, std::uint64_t use) {
  Draw draw(seed ^ (epoch * 0xd1342543de82ef95) ^ (use * 0xaf251af3b0f025b5));
  draw.next();
  return draw.next();
}

/// Fisher and Yates.
template <class Value>
void shuffle(std::vector<Value>& values, std::uint64_t seed) {
  Draw draw(seed);
  for (std::size_t left = values.size(); left > 1; --left) std::swap(values[left - 1], values[draw.below(left)]);
}

}  // namespace sealift::trainer
