// SPDX-License-Identifier: Apache-2.0
// The host's python3 in place of a bundle's, and the host's shell, for tests of what an
// installation is worth to them. Where there is none, such a test says so and passes.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "tests/installer/site.hpp"
#include "tests/support/left_out.hpp"

namespace sealift::test {

inline constexpr const char* kHostPython = "/usr/bin/python3";

inline bool host_python_is_there() {
  if (::access(kHostPython, X_OK) == 0) return true;
  sealift::test::left_out("there is no ", kHostPython);
  return false;
}

// bin/python3 is the host's interpreter, and sees nothing of the generation.
inline TinyItem host_python() {
  return file_item("files/python", std::string("#!/bin/sh\nexec ") + kHostPython + " \"$@\"\n", "bin/python3", true);
}

// bin/python3 is the host's interpreter with this generation's site-packages; `first` are lines of shell before it.
inline TinyItem borrowed_python(const std::string& first = "") {
  const std::string text = "#!/bin/sh\nhere=$(dirname -- \"$(realpath -- \"$0\")\")\n" + first +
                           "PYTHONPATH=\"$here/../lib/python3.11/site-packages\" exec " + kHostPython + " -B \"$@\"\n";
  return file_item("files/python", text, "bin/python3", true);
}

struct Ran {
  std::string output;  // and errors, as they came
  int status = 0;      // as wait(2) gives it
};

inline Ran run_in_shell(const std::string& command) {
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  Ran ran;
  char piece[4096];
  for (std::size_t count; (count = std::fread(piece, 1, sizeof piece, pipe)) > 0;) ran.output.append(piece, count);
  ran.status = ::pclose(pipe);
  return ran;
}

}  // namespace sealift::test
