// SPDX-License-Identifier: Apache-2.0
// What a rank tells about its units: gather, reduce, forward and backward of a unit, begun and ended.
// Flats and units call `Observers`; a profiler, a timeline or a monitor listens.
// An interface of three calls without tensors or clocks, so that who measures decides how, and nobody pays who does
// not.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sealift::train {

/// What a rank does with a unit. The waits are the parts of Gather and Reduce for which the rank (on CUDA: its stream)
/// had nothing else to do.
enum class Activity { Gather, GatherWait, Reduce, ReduceWait, Forward, Backward };

constexpr const char* to_string(Activity activity) {
  constexpr std::array names = {"gather", "gather wait", "reduce", "reduce wait", "forward", "backward"};
  return names[static_cast<std::size_t>(activity)];
}

/// Gather and Reduce begin when the collective is issued and end when it was waited for: several may be open at once,
/// of each unit at most one of a kind. Calls of one rank come one after another, though from the threads that autograd
/// uses. An observer must not throw.
class Observer {
 public:
  virtual ~Observer() = default;
  /// `unit`: its path, "root", or "bucket 3".
  virtual void begin(Activity activity, const std::string& unit) = 0;
  virtual void end(Activity activity, const std::string& unit) = 0;
  /// A backward pass ended with everything reduced. `step` counts from 1.
  virtual void step_ended([[maybe_unused]] std::int64_t step) {}
};

/// All observers of a rank; without one, telling costs a comparison.
class Observers {
 public:
  void add(std::shared_ptr<Observer> observer) { observers_.push_back(std::move(observer)); }
  bool empty() const { return observers_.empty(); }

  void begin(Activity activity, const std::string& unit) const {
    for (const auto& observer : observers_) observer->begin(activity, unit);
  }
  void end(Activity activity, const std::string& unit) const {
    for (const auto& observer : observers_) observer->end(activity, unit);
  }
  void step_ended(std::int64_t step) const {
    for (const auto& observer : observers_) observer->step_ended(step);
  }

 private:
  std::vector<std::shared_ptr<Observer>> observers_;
};

/// Tells that an activity goes on while this lives, also when an exception ends it. Holds references: `unit` outlives
/// it.
class ObservedScope {
 public:
  ObservedScope(const Observers& observers, Activity activity, const std::string& unit)
      : observers_(observers), activity_(activity), unit_(unit) {
    observers_.begin(activity_, unit_);
  }
  ~ObservedScope() { observers_.end(activity_, unit_); }
  ObservedScope(const ObservedScope&) = delete;
  ObservedScope& operator=(const ObservedScope&) = delete;

 private:
  const Observers& observers_;
  Activity activity_;
  const std::string& unit_;
};

}  // namespace sealift::train
