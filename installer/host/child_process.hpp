// SPDX-License-Identifier: Apache-2.0
// Runs a program of the generation that is being built, and waits for its end. The child gets an environment made here,
// so that nothing of the host (LD_LIBRARY_PATH, PYTHONPATH) makes a broken generation look whole, and it dies with us.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace sealift::installer {

struct Child {
  std::vector<std::string> arguments;  // the program's path first
  std::filesystem::path scratch;       // serves as HOME and TMPDIR
  std::chrono::seconds patience = std::chrono::minutes(10);
};

struct ChildEnd {
  bool late = false;   // patience ran out, and it was killed
  int exit_code = 0;   // where it ended by itself
  int signal = 0;      // where it was killed
  std::string errors;  // the last bytes that it wrote to stderr; stdout goes nowhere
  std::uint64_t milliseconds = 0;

  bool good() const { return !late && signal == 0 && exit_code == 0; }
  // "exit code 1", "signal 11", "no end after 600 seconds", with the end of stderr below.
  std::string text(const Child& child) const;
};

// Throws Io when no process can be made at all.
ChildEnd run_child(const Child& child);

}  // namespace sealift::installer
