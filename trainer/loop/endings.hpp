// SPDX-License-Identifier: Apache-2.0
// Why a run ends before its last step: it was told to (SIGTERM, of Slurm, Kubernetes or a person), or its time is over.
// The loop asks after each step; ranks sum up what they say with the step's loss, so that all end after the same one.
// A signal only leaves a mark: what saves must not be cut short, and a rank that left alone would hang the others.
#pragma once

#include "trainer/failure.hpp"
#include "trainer/monitor/start_up.hpp"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace sealift::trainer {

/// How many ranks want to end, and why.
struct EndWishes {
  std::int64_t told = 0, late = 0;

  bool any() const { return told > 0 || late > 0; }
  /// The key "ended_by" of result.json.
  const char* cause() const { return told > 0 ? kBySigterm : kByTimeLimit; }
};

/// While it lives, SIGTERM is a wish and ends nothing by itself.
class Endings {
 public:
  /// `time_limit`: seconds of the process, 0: none.
  explicit Endings(std::int64_t time_limit)
      : limit_(static_cast<double>(time_limit)), before_(seconds_since_process_start()) {
    told() = false;
    struct sigaction action {};
    action.sa_handler = [](int) { told() = true; };
    action.sa_flags = SA_RESTART;
    sigaction(SIGTERM, &action, &earlier_);
  }
  ~Endings() { sigaction(SIGTERM, &earlier_, nullptr); }
  Endings(const Endings&) = delete;
  Endings& operator=(const Endings&) = delete;

  /// Of this rank. Late is who could not do another step and save it.
  EndWishes mine() const {
    return {.told = told() ? 1 : 0, .late = limit_ > 0 && seconds() + step_ + save_ >= limit_ ? 1 : 0};
  }

  /// What a step and a save took at most.
  void took_step(double seconds) { step_ = std::max(step_, seconds); }
  void took_save(double seconds) { save_ = std::max(save_, seconds); }

 private:
  using Clock = std::chrono::steady_clock;

  static std::atomic<bool>& told() {
    static std::atomic<bool> mark = false;
    return mark;
  }

  double seconds() const { return before_ + std::chrono::duration<double>(Clock::now() - start_).count(); }

  double limit_, before_, step_ = 0, save_ = 0;
  Clock::time_point start_ = Clock::now();
  struct sigaction earlier_ {};
};

}  // namespace sealift::trainer
