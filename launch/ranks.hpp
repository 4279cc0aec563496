// SPDX-License-Identifier: Apache-2.0
// Starts a command, as this process or once for each rank of this host, and ends the ranks together.
// Last step of sealift-launch.
// Each rank leads a session of its own, so that what it has started is ended with it, and a terminal's Ctrl-C reaches
// it once, from here.
#pragma once

#include "launch/place.hpp"

namespace sealift::launch {

/// Writes a line after the program's name to standard error, as terminal_text (bundle/core/foreign_text.hpp), in one
/// write, since ranks share it.
void say(const std::string& line);

/// Becomes `command`, found in PATH, with `variables`. Returns 127, or 126 where it is no program, if that fails.
int become(char** command, const std::vector<Variable>& variables);

/// Runs `command` as the ranks of `place`, sends them SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 when they come, and
/// waits for all. When one fails it is named, the others get SIGTERM, and SIGKILL after ten seconds. Returns 0 when
/// all ended with 0, else the code of the first failed one, 128 and its number for a signal.
int run_ranks(char** command, const Place& place);

}  // namespace sealift::launch
