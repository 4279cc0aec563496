// SPDX-License-Identifier: Apache-2.0
// Where the time of a step went: seconds of forward and backward, of communication, and of waiting for it.
// From the activities that a `Timeline` gives to numbers; a monitor holds them against the step's whole time.
// Pure arithmetic on intervals: units nest and collectives overlap, so seconds are of unions and none counts twice.
#pragma once

#include <sealift/train/comm/observer.hpp>

#include <algorithm>

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

  StepTimes& operator+=(const StepTimes& other) {
    for (auto part : {&StepTimes::forward, &StepTimes::backward, &StepTimes::gather, &StepTimes::reduce,
                      &StepTimes::gather_wait, &StepTimes::reduce_wait, &StepTimes::forward_wait}) {
      this->*part += other.*part;
    }
    return *this;
  }
};

namespace detail {

using Spans = std::vector<std::pair<double, double>>;  ///< begin, end

/// Length of the union.
inline double covered(Spans spans) {
  std::sort(spans.begin(), spans.end());
  double sum = 0, until = spans.empty() ? 0 : spans.front().first;
  for (const auto& [begin, end] : spans) {
    sum += std::max(0.0, end - std::max(begin, until));
    until = std::max(until, end);
  }
  return sum;
}

inline Spans spans_of(const std::vector<TimedActivity>& activities, std::initializer_list<Activity> kinds) {
  Spans spans;
  for (const auto& each : activities) {
    if (std::find(kinds.begin(), kinds.end(), each.activity) != kinds.end()) spans.emplace_back(each.begin, each.end);
  }
  return spans;
}

}  // namespace detail

/// Sums up activities in any order.
inline StepTimes times_of(const std::vector<TimedActivity>& activities) {
  using enum Activity;
  const auto seconds = [&](std::initializer_list<Activity> kinds) {
    return detail::covered(detail::spans_of(activities, kinds));
  };
  StepTimes times{.backward = seconds({Backward}),
                  .gather = seconds({Gather}),
                  .reduce = seconds({Reduce}),
                  .gather_wait = seconds({GatherWait}),
                  .reduce_wait = seconds({ReduceWait})};
  times.forward = seconds({Forward, Backward}) - times.backward;
  // What waits share with forward alone: |F + B + W| = |F + B| + |W| - |W in F + B|, and the same for B.
  const auto beside = [&](std::initializer_list<Activity> with_waits, double without) {
    return seconds({GatherWait, ReduceWait}) - (seconds(with_waits) - without);
  };
  times.forward_wait = beside({Forward, Backward, GatherWait, ReduceWait}, times.forward + times.backward) -
                       beside({Backward, GatherWait, ReduceWait}, times.backward);
  return times;
}

}  // namespace sealift::train
