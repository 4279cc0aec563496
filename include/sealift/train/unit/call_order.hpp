// SPDX-License-Identifier: Apache-2.0
// The order in which units run, and so which ones to gather next.
// `unit` reports every call; the answers are numbers of units. Gathers nothing itself.
// Forward is expected to repeat the forward before; backward to take this forward's calls in reverse. A wrong guess
// costs memory for a unit that is not needed yet, never a wrong number, and every rank makes the same guess.
// Mirrored by trainer/plan/memory.cpp and trainer/simulate/step_time.cpp: change both.
#pragma once

#include <cstddef>
#include <sealift/train/bodies.hpp>
#include <utility>
#include <vector>

namespace sealift::train {

class CallOrder {
 public:
  /// The root's forward begins; it is expected to repeat what was recorded since the last one.
  void start_forward();

  /// `unit` is about to run forward; returns the units expected after it, at most `depth`, none twice.
  std::vector<std::size_t> before_forward(std::size_t unit, std::size_t depth, bool record);

  /// `unit` ran forward and will run backward; returns the call's place among such calls.
  std::size_t after_forward(std::size_t unit);

  /// The call at `place` is about to run backward; returns the units expected after it, at most `depth`, none twice.
  std::vector<std::size_t> before_backward(std::size_t place, std::size_t depth) const;

  /// No recorded call will run backward any more.
  void forget_calls() { calls_.clear(); }

 private:
  template <class Iterator>
  static std::vector<std::size_t> others(std::size_t unit, std::size_t depth, Iterator from, Iterator end);

  std::vector<std::size_t> expected_;  ///< calls of this forward
  std::vector<std::size_t> recorded_;  ///< calls of this forward so far
  std::vector<std::size_t> calls_;     ///< that may run backward, in forward order; a unit once per call
  std::size_t next_ = 0;               ///< in `expected_`
};

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/unit/call_order_inl.hpp>
#endif
