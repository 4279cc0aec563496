// SPDX-License-Identifier: Apache-2.0
// Starts another program, without a shell in between, and waits for its end. The environment is the given one and
// nothing else, no descriptor but the three streams and no key is handed down that is not named, what is kept of the
// output is bounded, and a child never outlives us.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sealift::bundle {

struct Child {
  std::vector<std::string> arguments;    // the program's path first
  std::vector<std::string> environment;  // NAME=VALUE
  // In a session of its own, which has no terminal to type into and ends as a whole, and without new privileges
  // (setuid). False for programs of this machine: they may ask on its terminal, and may be started by a setuid program.
  bool contained = true;
  std::optional<std::chrono::seconds> patience = std::chrono::minutes(10);  // then it is killed
  std::size_t keep_output = 0;                                              // bytes of stdout; 0: it goes nowhere
  std::size_t keep_errors = 4000;                                           // bytes of stderr
  bool of_login = false;       // it gets the login's session keyring and umask, as git and uv may need them
  std::vector<int> kept = {};  // ascending: descriptors that it gets, under their numbers
  // Bytes of a file that it, or what it starts, may write; 0: as for us. One that wants more gets SIGXFSZ.
  std::uint64_t largest_file = 0;
  // Bytes that it may allocate, and each program that it starts; 0: as for us. Files that it maps do not count.
  std::uint64_t most_memory = 0;
  // Called about twice a second while it runs, with the last line that it printed on a stream that is kept.
  std::function<void(std::string_view)> watch = {};
};

struct ChildEnd {
  bool late = false;   // patience ran out, and it was killed
  int exit_code = 0;   // where it ended by itself; 127 or 126 when it could not be started
  int signal = 0;      // where it was killed
  std::string output;  // the last bytes of stdout
  std::string errors;  // the last bytes of stderr: UTF-8, and of control characters only line breaks and tabs
  std::uint64_t milliseconds = 0;

  bool good() const { return !late && signal == 0 && exit_code == 0; }
  // "exit code 1", "signal 11", "no end after 600 seconds", with the end of stderr below.
  std::string text(const Child& child) const;
};

// stdin is empty. Throws Io when no process can be made at all, and Interrupted once the child has ended by SIGTERM or,
// three seconds later, by SIGKILL.
ChildEnd run_child(const Child& child);

// A child that is not waited for yet. It is killed when this object ends, and when we die.
class RunningChild {
 public:
  // Descriptors that become its stdin, stdout and stderr; -1: /dev/null. Looks at `arguments`, `environment` and
  // `contained` only.
  RunningChild(const Child& child, int input, int output, int errors);
  RunningChild(const RunningChild&) = delete;
  RunningChild& operator=(const RunningChild&) = delete;
  ~RunningChild();

  pid_t pid() const { return pid_; }
  int wait();  // the status that waitpid reports
  bool ends_within(std::chrono::milliseconds patience);
  void signal(int number) const;

 private:
  pid_t pid_ = 0;
  bool contained_;
};

}  // namespace sealift::bundle
