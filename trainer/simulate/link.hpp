// SPDX-License-Identifier: Apache-2.0
// A link on which collectives travel: each first waits out a latency, then shares the bandwidth with those in flight.
// `step_time` issues transfers and moves the clock; two of these are two networks.
// Fluid, with exact moments of change: between two changes every transfer has a constant rate, so no step is too long.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace sealift::trainer {

class Link {
 public:
  struct Transfer {
    std::size_t group = 0;      ///< 0 or 1; transfers of one group begin in the order in which they were issued
    double ready = 0;           ///< the earliest beginning: when it was issued, or what it waits for ends
    double bytes = 0;           ///< left
    double begin = -1;          ///< -1: has not begun
    double end = -1;            ///< -1: has not ended
    std::ptrdiff_t after = -1;  ///< the transfer whose end let it begin; -1: it began when it was ready
    std::ptrdiff_t with = -1;   ///< the one before it, which was not ready and held it up; -1: none did
    bool flows = false;         ///< its bytes move: the latency is over
    double due = 0;             ///< when its latency or, at the present rate, its bytes will be over
  };

  /// `at_once`: transfers of one group that are in flight together.
  Link(double bytes_per_second, double latency, std::size_t at_once)
      : rate_(bytes_per_second), latency_(latency), at_once_(at_once) {}

  /// Returns the transfer's number.
  std::size_t issue(std::size_t group, double now, double ready, double bytes);

  const Transfer& operator[](std::size_t number) const { return all_[number]; }
  bool is_done(std::size_t number) const { return all_[number].end >= 0; }
  bool moves_bytes() const { return flowing_ > 0; }

  /// When a transfer will begin, start to move bytes or end; infinite if none will.
  double next_change(double now) const;

  /// Moves the clock from `now` to `to`, which is no later than `next_change`.
  void advance(double now, double to);

 private:
  void begin_what_may(double now);

  double rate_, latency_;
  std::size_t at_once_;
  std::vector<Transfer> all_;
  std::vector<std::size_t> open_;                        ///< not ended, in the order of issue
  std::size_t flowing_ = 0;                              ///< of them
  std::array<std::ptrdiff_t, 2> last_ended_ = {-1, -1};  ///< by group
};

}  // namespace sealift::trainer
