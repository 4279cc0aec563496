// SPDX-License-Identifier: Apache-2.0
// The bodies of profiler_ranges.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/step/profiler_ranges.hpp>

namespace sealift::train {

SEALIFT_BODY void ProfilerRanges::begin(Activity activity, const std::string& unit) {
  if (activity != Activity::Gather && activity != Activity::Reduce) open(name_of(activity, unit));
}

SEALIFT_BODY void ProfilerRanges::end(Activity activity, const std::string& unit) {
  if (ranges_.empty()) return;
  const auto name = name_of(activity, unit);
  std::vector<std::string> newer;
  for (auto i = ranges_.size(); i-- > 0;) {
    if (ranges_[i].name != name) continue;
    while (ranges_.size() > i + 1) newer.push_back(close());
    close();
    for (auto again = newer.rbegin(); again != newer.rend(); ++again) open(*again);
    return;
  }
}

SEALIFT_BODY void ProfilerRanges::step_ended(std::int64_t) {
  while (!ranges_.empty()) close();
}

SEALIFT_BODY void ProfilerRanges::open(const std::string& name) {
  auto callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE);
  if (!callbacks) return;
  ranges_.push_back({name, std::make_unique<at::RecordFunction>(std::move(*callbacks))});
  ranges_.back().record->before(ranges_.back().name);
}

SEALIFT_BODY std::string ProfilerRanges::name_of(Activity activity, const std::string& unit) {
  return std::string("sealift::") + to_string(activity) + " " + unit;
}

SEALIFT_BODY std::string ProfilerRanges::close() {
  auto name = std::move(ranges_.back().name);
  ranges_.pop_back();
  return name;
}

}  // namespace sealift::train
