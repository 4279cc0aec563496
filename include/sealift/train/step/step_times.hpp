// SPDX-License-Identifier: Apache-2.0
// Where the time of a step went: seconds of forward and backward, of communication, and of waiting for it.
// From the activities that a `Timeline` gives to numbers; a monitor holds them against the step's whole time.
// Pure arithmetic on intervals: units nest and collectives overlap, so seconds are of unions and none counts twice.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/comm/observer.hpp>

namespace sealift::train {

/// One activity that has ended; times in seconds on one clock.
struct TimedActivity {
  Activity activity = Activity::Forward;
  std::string unit;
  double begin = 0, end = 0;
};

/// Seconds, of one step or of several.
struct StepTimes {
  double forward = 0;   ///< in a forward that is not run again inside of a backward
  double backward = 0;  ///< in a backward
  double gather = 0;    ///< with a gather in flight, hidden behind computation or not
  double reduce = 0;    ///< ... with a reduction
  double gather_wait = 0, reduce_wait = 0;
  double forward_wait = 0;  ///< the part of both waits that lies in `forward`

  /// Communication that computation did not hide.
  double exposed() const { return gather_wait + reduce_wait; }

  StepTimes& operator+=(const StepTimes& other);
};

namespace detail {

using Spans = std::vector<std::pair<double, double>>;  ///< begin, end

/// Length of the union.
double covered(Spans spans);

}  // namespace detail

/// Sums up activities in any order.
StepTimes times_of(const std::vector<TimedActivity>& activities);

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/step/step_times_inl.hpp>
#endif
