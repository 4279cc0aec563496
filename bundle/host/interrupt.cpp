// SPDX-License-Identifier: Apache-2.0
// One number that a signal handler writes, or one line; see interrupt.hpp.
#include "sealift/bundle/host/interrupt.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>

namespace sealift::bundle {

namespace {

std::atomic<int> caught{0};
static_assert(std::atomic<int>::is_always_lock_free);

void remember(int signal) {
  caught = signal;
}

std::atomic<const char*> last_line{nullptr};
static_assert(std::atomic<const char*>::is_always_lock_free);

// Calls nothing but what a signal handler may.
void say_and_end(int signal) {
  const char* const line = last_line;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, std::strlen(line));
  ::raise(signal);  // whose handler is the system's own again
}

// What the caller ignores stays ignored.
void handle(void (*handler)(int)) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action.sa_handler = handler;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace

void catch_interrupts() {
  handle(remember);
}

void say_when_interrupted(const char* line) {
  last_line = line;
  handle(say_and_end);
}

void stop_if_interrupted() {
  if (const int signal = caught; signal != 0) throw Interrupted{signal};
}

}  // namespace sealift::bundle
