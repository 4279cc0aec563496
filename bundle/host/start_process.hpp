// SPDX-License-Identifier: Apache-2.0
// How each of our programs starts another: nothing is handed down but what is named, and the new process dies with us.
// Below run_child, the checks' children, and the ranks of a job. Safe where the process has threads: everything is made
// before the fork, and between fork and exec only system calls are made. It needs nothing but libc, so that
// sealift-launch, which is static and small, is built with it.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sealift::bundle {

// A variable and its value; nothing: it is removed.
using Variable = std::pair<std::string, std::optional<std::string>>;

// This process's environment with these changes, as NAME=VALUE; each name once.
std::vector<std::string> environment_with(const std::vector<Variable>& changes);

enum class Kin {
  Ours,     // in our process group: a terminal's Ctrl-C reaches it
  Group,    // leads a group, so that -pid is it and what it has started
  Session,  // leads a session too, without a terminal
};

struct ProcessStart {
  std::vector<std::string> arguments;         // the program first: a path, or a name that our PATH has
  std::string program = {};                   // its path, where the first argument is another
  std::vector<std::string> environment;       // all of it
  std::array<int, 3> streams = {-1, -1, -1};  // what becomes its stdin, stdout and stderr; -1: /dev/null
  std::vector<int> kept = {};                 // ascending: more that it gets, under their numbers
  std::string folder = {};                    // where it starts; empty: where we are
  Kin kin = Kin::Ours;
  // What belongs to a login: its session keyring (Kerberos, AFS) and its umask. False: an empty one, and 022.
  bool of_login = false;
  bool no_new_privileges = false;  // a setuid program stays the caller's
  bool no_core = false;            // a crash leaves no image of its memory
  std::uint64_t largest_file = 0;  // bytes of a file that it, or what it starts, may write; 0: as for us
  std::uint64_t most_memory = 0;   // bytes that it may allocate, and each that it starts; 0: as for us
  // What its stderr gets, and the reason behind it, where the program cannot be started; nothing: neither.
  std::optional<std::string> complaint = "";
  std::function<bool()> last_step = {};  // in the child, before exec: system calls only; false: it ends with 126
};

// Starts it; -1 and errno where no process can be made. Signals are as they were made for a new program: none is
// blocked, and of our ignored signals only SIGHUP, SIGINT and SIGQUIT stay ignored, as nohup and shells want it.
// Where the program cannot be started the process ends with 127 (there is none) or 126. It is killed when the thread
// that started it ends.
pid_t start_process(const ProcessStart& start);

// The status that waitpid reports, whatever signals come meanwhile.
int wait_for_process(pid_t process);

// Becomes the program, found as above; returns errno where that fails. Our descriptors, signals and environment stay.
int become_program(const std::vector<std::string>& arguments);

}  // namespace sealift::bundle
