// SPDX-License-Identifier: Apache-2.0
// Runs a line of the shell and keeps what it says.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/temp_dir.hpp"

namespace sealift::test {

struct ShellRan {
  int status;
  std::string output;  // and errors
};

inline ShellRan run_shell(const std::string& command, const std::filesystem::path& log) {
  const int status = std::system(("( " + command + " ) >'" + log.string() + "' 2>&1 < /dev/null").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, read_file(log)};
}

inline bool has_shell_program(const std::string& name) {
  return std::system(("command -v " + name + " > /dev/null 2>&1").c_str()) == 0;
}

}  // namespace sealift::test
