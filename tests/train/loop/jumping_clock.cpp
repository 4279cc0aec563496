// SPDX-License-Identifier: Apache-2.0
// A clock that is set while a program runs, to be preloaded: a day forward and back again, each half second.
// For failures_test.py.
// Only the time of day jumps, as where a person or a time service sets it; CLOCK_MONOTONIC cannot.
#include <dlfcn.h>
#include <sys/time.h>
#include <ctime>

namespace {

int real(clockid_t clock, timespec* time) {
  static const auto call = reinterpret_cast<int (*)(clockid_t, timespec*)>(dlsym(RTLD_NEXT, "clock_gettime"));
  return call(clock, time);
}

}  // namespace

#define SEALIFT_SHOWN __attribute__((visibility("default")))

extern "C" {

SEALIFT_SHOWN int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = real(clock, time);
  timespec steady{};
  if (clock != CLOCK_REALTIME || result != 0 || real(CLOCK_MONOTONIC, &steady) != 0) return result;
  time->tv_sec += steady.tv_nsec < 500000000 ? 86400 : -86400;
  return 0;
}

SEALIFT_SHOWN int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

SEALIFT_SHOWN time_t time(time_t* result) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}
}
