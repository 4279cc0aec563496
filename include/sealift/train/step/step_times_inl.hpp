// SPDX-License-Identifier: Apache-2.0
// The bodies of step_times.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/step/step_times.hpp>

#include <algorithm>

namespace sealift::train {

SEALIFT_BODY StepTimes& StepTimes::operator+=(const StepTimes& other) {
  for (auto part : {&StepTimes::forward, &StepTimes::backward, &StepTimes::gather, &StepTimes::reduce,
                    &StepTimes::gather_wait, &StepTimes::reduce_wait, &StepTimes::forward_wait}) {
    this->*part += other.*part;
  }
  return *this;
}

namespace detail {

SEALIFT_BODY double covered(Spans spans) {
  std::sort(spans.begin(), spans.end());
  double sum = 0, until = spans.empty() ? 0 : spans.front().first;
  for (const auto& [begin, end] : spans) {
    sum += std::max(0.0, end - std::max(begin, until));
    until = std::max(until, end);
  }
  return sum;
}

SEALIFT_BODY Spans spans_of(const std::vector<TimedActivity>& activities, std::initializer_list<Activity> kinds) {
  Spans spans;
  for (const auto& each : activities) {
    if (std::find(kinds.begin(), kinds.end(), each.activity) != kinds.end()) spans.emplace_back(each.begin, each.end);
  }
  return spans;
}

}  // namespace detail

SEALIFT_BODY StepTimes times_of(const std::vector<TimedActivity>& activities) {
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
