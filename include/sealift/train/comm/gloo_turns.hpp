// SPDX-License-Identifier: Apache-2.0
// Gloo's threads give up their core while they cannot go on. For programs: include it in one source; train.hpp does
// not. Gloo's thread (gloo/transport/tcp/pair.cc, `handleEvents`) asks epoll again at once while the rank's own thread
// holds the connection, so where ranks share cores it spins on the core that the holder waits for: of the processor
// that four ranks took on two cores, four fifths were this. It finds the function below in place of the C library's.
#pragma once

#include <sched.h>
#include <sys/epoll.h>

/// As the C library's, but a thread that gets events again lets others run first.
extern "C" [[gnu::used]] inline int epoll_wait(int poll, epoll_event* events, int max_events, int timeout_ms) {
  thread_local bool had_events = false;
  if (had_events) sched_yield();
  const int count = epoll_pwait(poll, events, max_events, timeout_ms, nullptr);
  had_events = count > 0;
  return count;
}
