// SPDX-License-Identifier: Apache-2.0
// Writes down when each activity of this rank's units began and ended.
// An observer of `Parallel`; the loop takes what was seen once per step, and `times_of` sums it up.
// On a device a moment is an event in its current stream, read when the loop takes what was seen: telling never waits.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/step/step_times.hpp>

#include <c10/core/Event.h>

#include <chrono>
#include <optional>

namespace sealift::train {

namespace detail {

/// Moments by number, read together. On a device a moment is when its stream came there, in the order of its work.
class Moments {
 public:
  explicit Moments(at::Device device);

  /// Seconds on the host's clock since this was made.
  double now() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  /// Marks this moment; returns its number, counted from 0 since the last `take`.
  std::size_t mark();

  /// All moments, in seconds since this was made. Waits until the device has come to here.
  std::vector<double> take();

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

  SEALIFT_BODY void begin(Activity activity, const std::string& unit) override;

  SEALIFT_BODY void end(Activity activity, const std::string& unit) override;

  /// What began and ended since the last call, in the order of its beginnings, in seconds since this timeline was made.
  /// What has not ended is dropped: a failed pass leaves such. Call once per step, where the loop waits for the device
  /// anyway, as after it has read the loss.
  std::vector<TimedActivity> take();

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

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/step/timeline_inl.hpp>
#endif
