// SPDX-License-Identifier: Apache-2.0
// The signals by which a run is told to end: a scheduler's or a person's, Ctrl-C, a terminal that goes.
// Below who waits for them: a rank's heartbeat (exchange) and the keeper of a run (verbs/end_of_run).
// One that is ignored when the program starts, as nohup does, tells nobody to end.
#pragma once

#include <signal.h>

#include <array>

namespace sealift::verify {

inline constexpr std::array<int, 3> kEndingSignals{SIGTERM, SIGINT, SIGHUP};

inline struct sigaction action_of(int signal) {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action;
}

/// For each signal of kEndingSignals that is not ignored.
inline void handle_endings(void (*handler)(int)) {
  for (const int signal : kEndingSignals) {
    auto action = action_of(signal);
    if (action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = handler;
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace sealift::verify
