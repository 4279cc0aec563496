// SPDX-License-Identifier: Apache-2.0
// A command line's way to an exit code.
// See command_line.hpp.
// What no verb accepts is refused by the tools' command line; what is said of a failure is these programs' own.
#include "trainer/command_line.hpp"

#include "bundle/core/foreign_text.hpp"
#include "trainer/failure.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace sealift::trainer {
namespace {

/// `code`, or that what was printed did not arrive: of a result that nobody can read, success would be a lie.
int printed(int code) {
  std::cout.flush();
  if (std::cout && std::ferror(stdout) == 0) return code;
  say("what was printed cannot be written to standard output: is its disk full, or its file at a limit (ulimit -f)?");
  return code == 0 ? kCannotTell : code;
}

}  // namespace

int run_program(bundle::Program& program, int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return printed(program.parse(argc, argv).value_or(0));
  } catch (const std::exception& error) {
    say(bundle::terminal_text(bundle::continued(text_of(error), 4, 4)));  // a file of a stranger may be quoted in it
    std::_Exit(exit_code_of(error));
  }
}

}  // namespace sealift::trainer
