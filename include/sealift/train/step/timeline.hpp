// SPDX-License-Identifier: Apache-2.0
// Writes down when each activity of this rank's units began and ended.
// An observer of `Parallel`; the loop takes what was seen once per step, and `times_of` sums it up.
// On a device a moment is an event in its current stream, read when the loop takes what was seen: telling never waits.
#pragma once

#include <sealift/train/step/step_times.hpp>

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <optional>

namespace sealift::train {

namespace detail {

/// Moments by number, read together. On a device a moment is when its stream came there, in the order of its work.
class Moments {
 public:
  explicit Moments(at::Device device) : device_(device) {
    if (!device_.is_cpu() && !device_.has_index()) device_ = guard().getDevice();
  }

  /// Seconds on the host's clock since this was made.
  double now() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  /// Marks this moment; returns its number, counted from 0 since the last `take`.
  std::size_t mark() {
    if (device_.is_cpu()) {
      seconds_.push_back(now());
      return seconds_.size() - 1;
    }
    if (count_ == events_.size()) events_.emplace_back(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
    events_[count_].record(guard().getStream(device_));
    return count_++;
  }

  /// All moments, in seconds since this was made. Waits until the device has come to here.
  std::vector<double> take() {
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

 private:
  using Clock = std::chrono::steady_clock;

  c10::impl::VirtualGuardImpl guard() const { return c10::impl::VirtualGuardImpl(device_.type()); }

  at::Device device_;
  Clock::time_point start_ = Clock::now();
  std::vector<double> seconds_;     ///< on the CPU
  std::vector<c10::Event> events_;  ///< on a device; the first `count_` are marked, the others wait to be used again
  std::size_t count_ = 0;
};

}  // namespace detail

/// Not for streams that are being captured into a CUDA graph.
class Timeline final : public Observer {
 public:
  /// `device`: where the model is; of a device without an index the current one.
  explicit Timeline(at::Device device = at::kCPU) : moments_(device) {}

  void begin(Activity activity, const std::string& unit) override {
    open_.push_back(seen_.size());
    seen_.push_back({activity, unit, moments_.mark(), {}});
  }

  void end(Activity activity, const std::string& unit) override {
    const auto last = std::find_if(open_.rbegin(), open_.rend(),
                                   [&](auto i) { return seen_[i].activity == activity && seen_[i].unit == unit; });
    if (last == open_.rend()) return;  // begun before the last `take`
    seen_[*last].end = moments_.mark();
    open_.erase(std::next(last).base());
  }

  /// What began and ended since the last call, in the order of its beginnings, in seconds since this timeline was made.
  /// What has not ended is dropped: a failed pass leaves such. Call once per step, where the loop waits for the device
  /// anyway, as after it has read the loss.
  std::vector<TimedActivity> take() {
    const auto seconds = moments_.take();
    std::vector<TimedActivity> result;
    for (auto& each : std::exchange(seen_, {})) {
      if (each.end) result.push_back({each.activity, std::move(each.unit), seconds[each.begin], seconds[*each.end]});
    }
    open_.clear();
    return result;
  }

  /// The time now, as `take` would give it on the CPU.
  double now() const { return moments_.now(); }

  /// When this was made, in seconds since 1970, to lay the timelines of several ranks over each other.
  double start() const { return start_; }

 private:
  struct Seen {
    Activity activity;
    std::string unit;
    std::size_t begin;  ///< moments
    std::optional<std::size_t> end;
  };

  detail::Moments moments_;
  double start_ = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  std::vector<Seen> seen_;
  std::vector<std::size_t> open_;  ///< of `seen_`, in the order of their beginnings
};

}  // namespace sealift::train
