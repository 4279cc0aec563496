// SPDX-License-Identifier: Apache-2.0
// A synthetic language whose entropy is known: a Markov chain over a small vocabulary.
// The trainer's data. A model that has learnt it reaches a loss of `entropy()` and none can go below, so the right
// result of the job is known. Every token is a pure function of (seed, step, sample, position), so every split over
// ranks sees the same data.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

namespace sealift::trainer {

/// A random number in [0, 1) for a key, the same on every machine (SplitMix64's finalizer over the key's parts).
inline double uniform(std::initializer_list<std::uint64_t> key) {
  std::uint64_t hash = 0x9e3779b97f4a7c15;
  for (auto part : key) {
    hash += part + 0x9e3779b97f4a7c15;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
    hash ^= hash >> 31;
  }
  return static_cast<double>(hash >> 11) * 0x1.0p-53;
}

/// A chain in which every state has a few possible successors of unequal probability.
class MarkovSource {
 public:
  MarkovSource(std::int64_t vocabulary, std::uint64_t seed) : size_(static_cast<std::size_t>(vocabulary)), seed_(seed) {
    if (vocabulary < 2) throw std::invalid_argument("vocabulary is " + std::to_string(vocabulary) + "; at least 2");
    transition_.assign(size_ * size_, 0.0);
    for (std::size_t state = 0; state < size_; ++state) {
      double total = 0;
      for (std::uint64_t i = 0; i < kSuccessors; ++i) {
        // The first successor is the next state, so every state can be reached from every other.
        const auto chosen = i == 0 ? state + 1 : static_cast<std::size_t>(uniform({seed_, state, i}) * double(size_));
        const double weight = 0.1 + uniform({seed_, state, i, 1});
        transition_[state * size_ + chosen % size_] += weight;
        total += weight;
      }
      for (std::size_t next = 0; next < size_; ++next) transition_[state * size_ + next] /= total;
    }
    find_stationary();
  }

  double probability(std::size_t state, std::size_t next) const { return transition_[state * size_ + next]; }
  const std::vector<double>& stationary() const { return stationary_; }

  /// Nats per token, given the token before: -sum_i pi_i sum_j P_ij ln P_ij.
  double entropy() const {
    double sum = 0;
    for (std::size_t state = 0; state < size_; ++state) {
      for (std::size_t next = 0; next < size_; ++next) {
        const double p = probability(state, next);
        if (p > 0) sum -= stationary_[state] * p * std::log(p);
      }
    }
    return sum;
  }

  /// `length` tokens of sample `sample` of step `step`; the first comes from the stationary distribution.
  std::vector<std::int64_t> tokens(std::uint64_t step, std::uint64_t sample, std::int64_t length) const {
    std::vector<std::int64_t> result;
    const double* row = stationary_.data();
    for (std::int64_t position = 0; position < length; ++position) {
      double rest = uniform({seed_, step, sample, static_cast<std::uint64_t>(position), 2});
      std::size_t token = 0;
      std::size_t last_possible = 0;
      for (; token < size_ && rest >= 0; ++token) {
        rest -= row[token];
        if (row[token] > 0) last_possible = token;
      }
      result.push_back(static_cast<std::int64_t>(last_possible));
      row = transition_.data() + last_possible * size_;
    }
    return result;
  }

 private:
  static constexpr std::uint64_t kSuccessors = 4;

  /// Power iteration on the lazy chain (P + I) / 2, which has the same stationary distribution and no period.
  void find_stationary() {
    stationary_.assign(size_, 1.0 / double(size_));
    for (double change = 1; change > 1e-14;) {
      std::vector<double> next(size_, 0.0);
      for (std::size_t from = 0; from < size_; ++from) {
        next[from] += stationary_[from] / 2;
        for (std::size_t to = 0; to < size_; ++to) next[to] += stationary_[from] * probability(from, to) / 2;
      }
      change = 0;
      for (std::size_t i = 0; i < size_; ++i) change += std::abs(next[i] - stationary_[i]);
      stationary_ = std::move(next);
    }
  }

  std::size_t size_;
  std::uint64_t seed_;
  std::vector<double> transition_;  ///< [state][next], rows sum to 1
  std::vector<double> stationary_;
};

}  // namespace sealift::trainer
