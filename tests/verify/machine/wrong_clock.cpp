// SPDX-License-Identifier: Apache-2.0
// A clock that is three seconds ahead, for one host of slurm_test.sh: loaded there before the C library.
// Only the time of day is wrong; what measures durations stays right, as on a host whose clock nobody sets.
// A namespace of time would not do: it has no time of day.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += 3;
  return result;
}
