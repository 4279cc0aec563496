// SPDX-License-Identifier: Apache-2.0
// Runs a program's command line: the last line of the two mains.
// Parses, catches what verbs throw, and turns both into one line on standard error and an exit code.
// An unknown verb or option is said together with its nearest known one.
#pragma once

#include "bundle/host/command_line.hpp"

namespace sealift::trainer {

/// The exit code: 0 good, 1 bad, 2 cannot tell, which output that cannot be written is too. A file that grows beyond
/// the account's limit (ulimit -f) is an error of who writes it, and does not end the program.
int run_program(bundle::Program& program, int argc, char** argv);

}  // namespace sealift::trainer
