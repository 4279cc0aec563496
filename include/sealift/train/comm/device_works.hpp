// SPDX-License-Identifier: Apache-2.0
// The collectives of one rank that its device has not finished, and for which of them it has nothing else to do.
// `in_flight` adds each as it is issued; `issued_collectives` shows the oldest to the watch as waits of the rank.
// On a device no thread waits: streams do. So a wait is told from computing by two events: the inputs are there, the
// collective is not done.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/comm/collective_label.hpp>
#include <sealift/train/comm/device.hpp>

#include <c10/core/Event.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace sealift::train {

/// Thread-safe: the thread that trains adds, the watch asks.
class DeviceWorks {
 public:
  using Clock = std::chrono::steady_clock;

  /// A collective on a device that is not done.
  struct Running {
    std::uint64_t id = 0;      ///< grows with each
    std::uint64_t number = 0;  ///< in its group
    Label label;
    c10::intrusive_ptr<c10d::Work> work;
    std::optional<c10::Event> inputs;
    std::optional<Clock::time_point> since;  ///< when its inputs were seen to be there
  };

  /// The collectives of a group are done in the order in which they are added.
  void add(std::size_t group, Running running);

  /// Calls `visit(group, running)` with the oldest collective of each group, if it has its inputs.
  template <class Visit>
  void waits(const Visit& visit) {
    const std::lock_guard lock(mutex_);
    forget_done();
    for (auto& [group, queue] : groups_) {
      if (queue.empty()) continue;
      auto& oldest = queue.front();
      if (!oldest.since && has_inputs(oldest)) oldest.since = Clock::now();
      if (oldest.since) visit(group, std::as_const(oldest));
    }
  }

  /// Whether collective `id` is not done.
  bool contains(std::uint64_t id);

  /// The first collective that broke, and what its engine said.
  std::optional<std::pair<Label, std::string>> error();

 private:
  void forget_done();

  bool is_done(const Running& running);

  bool has_inputs(const Running& running);

  /// What `question` says; yes if the device breaks over it.
  template <class Question>
  bool asks(const Running& running, const Question& question);

  void note(const Label& label, const std::string& text);

  std::mutex mutex_;
  std::map<std::size_t, std::deque<Running>> groups_;  ///< oldest first
  std::optional<std::pair<Label, std::string>> error_;
};

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/comm/device_works_inl.hpp>
#endif
