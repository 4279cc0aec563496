// SPDX-License-Identifier: Apache-2.0
// One number that a signal handler writes; see interrupt.hpp.
#include "sealift/bundle/host/interrupt.hpp"

#include <atomic>
#include <csignal>

namespace sealift::bundle {

namespace {

std::atomic<int> caught{0};
static_assert(std::atomic<int>::is_always_lock_free);

void remember(int signal) {
  caught = signal;
}

}  // namespace

void catch_interrupts() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action.sa_handler = remember;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(signal, &action, nullptr);
  }
}

void stop_if_interrupted() {
  if (const int signal = caught; signal != 0) throw Interrupted{signal};
}

}  // namespace sealift::bundle
