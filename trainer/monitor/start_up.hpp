// SPDX-License-Identifier: Apache-2.0
// How long a rank takes until it trains: seconds of each phase, from the start of its process to the first step.
// A story (run, fine_tune) says after each phase that it is over; the monitor reports.
// From the kernel's start of the process, since loading LibTorch's libraries is a good part of the wait.
#pragma once

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <time.h>
#include <unistd.h>

namespace sealift::trainer {

/// Seconds since the process of `stat` was started, in steps of 1/100; proc(5): field 22, in ticks after boot.
/// 0 where there is no such file: a sandbox may have no /proc.
inline double seconds_since_process_start(const char* stat = "/proc/self/stat") {
  std::ifstream file(stat);
  std::string line;
  std::getline(file, line);
  std::istringstream fields(line.substr(line.rfind(')') + 1));  // the name before it may hold anything
  std::string field;
  for (int number = 3; number < 22; ++number) fields >> field;
  double ticks = 0;
  if (!(fields >> ticks)) return 0;
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const auto started = ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 - started;
}

class StartUp {
 public:
  /// The phase that has ended is "process": what the system and the launcher did.
  StartUp() { phases_.emplace_back("process", seconds_since_process_start()); }

  void finished(const std::string& phase) {
    const auto now = Clock::now();
    phases_.emplace_back(phase, std::chrono::duration<double>(now - std::exchange(last_, now)).count());
  }

  /// Name and seconds, in their order; the same phases on all ranks.
  const std::vector<std::pair<std::string, double>>& phases() const { return phases_; }

  double total() const {
    double sum = 0;
    for (const auto& [name, seconds] : phases_) sum += seconds;
    return sum;
  }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point last_ = Clock::now();
  std::vector<std::pair<std::string, double>> phases_;
};

}  // namespace sealift::trainer
