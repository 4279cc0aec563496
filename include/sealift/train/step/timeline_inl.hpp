// SPDX-License-Identifier: Apache-2.0
// The bodies of timeline.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/step/timeline.hpp>

#include <c10/core/impl/VirtualGuardImpl.h>

namespace sealift::train {

namespace detail {

SEALIFT_BODY Moments::Moments(at::Device device) : device_(device) {
  if (!device_.is_cpu() && !device_.has_index()) device_ = guard().getDevice();
}

SEALIFT_BODY std::size_t Moments::mark() {
  if (device_.is_cpu()) {
    seconds_.push_back(now());
    return seconds_.size() - 1;
  }
  if (count_ == events_.size()) events_.emplace_back(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
  events_[count_].record(guard().getStream(device_));
  return count_++;
}

SEALIFT_BODY std::vector<double> Moments::take() {
  const auto count = std::exchange(count_, 0);
  if (device_.is_cpu() || count == 0) return std::exchange(seconds_, {});
  // Measured back from now, where the clocks of host and device meet: elapsed times are floats, and the clocks drift.
  c10::Event here(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
  here.record(guard().getStream(device_));
  here.synchronize();
  const auto end = now();
  std::vector<double> seconds;
  for (std::size_t i = 0; i < count; ++i) {
    if (!events_[i].query()) events_[i].synchronize();  // on another stream
    seconds.push_back(end - events_[i].elapsedTime(here) / 1e3);
  }
  return seconds;
}

}  // namespace detail

SEALIFT_BODY void Timeline::begin(Activity activity, const std::string& unit) {
  open_.push_back(seen_.size());
  seen_.push_back({activity, unit, moments_.mark(), {}});
}

SEALIFT_BODY void Timeline::end(Activity activity, const std::string& unit) {
  const auto last = std::find_if(open_.rbegin(), open_.rend(),
                                 [&](auto i) { return seen_[i].activity == activity && seen_[i].unit == unit; });
  if (last == open_.rend()) return;  // begun before the last `take`
  seen_[*last].end = moments_.mark();
  open_.erase(std::next(last).base());
}

SEALIFT_BODY std::vector<TimedActivity> Timeline::take() {
  const auto seconds = moments_.take();
  std::vector<TimedActivity> result;
  for (auto& each : std::exchange(seen_, {})) {
    if (each.end) result.push_back({each.activity, std::move(each.unit), seconds[each.begin], seconds[*each.end]});
  }
  open_.clear();
  return result;
}

}  // namespace sealift::train
