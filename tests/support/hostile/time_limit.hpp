// SPDX-License-Identifier: Apache-2.0
// The time that a reader may take for one hostile input.
// Around each case of the corpus: a reader that goes on for longer hangs, and the kernel ends the program.
// Counted in the processor's time, so that a machine with other work on it ends nothing.
#pragma once

#include <sys/time.h>

#include "tests/support/refusal.hpp"

namespace sealift::test {

/// Ends the process by SIGPROF when it has used 120 s of processor time while one of these lives.
class TimeLimit {
 public:
  TimeLimit() { set(120); }
  ~TimeLimit() { set(0); }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

 private:
  static void set(long seconds) {
    const itimerval limit{.it_interval = {}, .it_value = {.tv_sec = seconds, .tv_usec = 0}};
    ::setitimer(ITIMER_PROF, &limit, nullptr);
  }
};

/// How `action` is refused; where it takes longer than a TimeLimit, the program ends.
template <class Action>
bundle::Error in_time(const Action& action) {
  const TimeLimit limit;
  return refusal(action);
}

}  // namespace sealift::test
