// SPDX-License-Identifier: Apache-2.0
// Shows units in LibTorch's profiler: forward, backward and waits as user ranges around the operators that they run.
// An observer of `Parallel`; does nothing while no profiler runs.
// Gathers and reductions in flight overlap all else, so they have no range here; their waits have one.
#pragma once

#include <sealift/train/comm/observer.hpp>

#include <ATen/record_function.h>

namespace sealift::train {

/// Ranges are named "sealift::forward layer0". NVTX and Kineto close the newest range first, whatever is asked for:
/// when units end in another order, as parallel branches do in backward, newer ones are cut in two.
class ProfilerRanges final : public Observer {
 public:
  void begin(Activity activity, const std::string& unit) override {
    if (activity != Activity::Gather && activity != Activity::Reduce) open(name_of(activity, unit));
  }

  void end(Activity activity, const std::string& unit) override {
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

  /// Closes what a failed pass has left open.
  void step_ended(std::int64_t) override {
    while (!ranges_.empty()) close();
  }

 private:
  struct Range {
    std::string name;
    std::unique_ptr<at::RecordFunction> record;
  };

  void open(const std::string& name) {
    auto callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE);
    if (!callbacks) return;
    ranges_.push_back({name, std::make_unique<at::RecordFunction>(std::move(*callbacks))});
    ranges_.back().record->before(ranges_.back().name);
  }

  static std::string name_of(Activity activity, const std::string& unit) {
    return std::string("sealift::") + to_string(activity) + " " + unit;
  }

  /// Closes the newest range and returns its name.
  std::string close() {
    auto name = std::move(ranges_.back().name);
    ranges_.pop_back();
    return name;
  }

  std::vector<Range> ranges_;
};

}  // namespace sealift::train
