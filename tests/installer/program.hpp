// SPDX-License-Identifier: Apache-2.0
// The real sealift-install as a child process: what it prints, how it ends, and what it took of the machine.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/installer/site.hpp"

namespace sealift::test {

struct Outcome {
  int exit = -1;  // 128 + signal when it was killed
  std::string out;
  std::string err;
  std::uint64_t peak_memory = 0;  // bytes, the largest that lay in memory at once
  std::uint64_t bytes_read = 0;   // by all read calls together; 0 where the kernel does not count
};

// What a child does between fork and exec.
using Preparation = void (*)();

inline pid_t start(const TempDir& dir, std::vector<std::string> arguments, const char* root = nullptr,
                   Preparation prepare = nullptr) {
  arguments.insert(arguments.begin(), root != nullptr ? "/sealift-install" : SEALIFT_INSTALL);
  std::vector<char*> list;
  for (std::string& argument : arguments) list.push_back(argument.data());
  list.push_back(nullptr);
  const std::string out = dir / "stdout", err = dir / "stderr";
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
  ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
  if (root != nullptr && (::chroot(root) != 0 || ::chdir("/") != 0)) ::_exit(99);
  if (prepare != nullptr) prepare();
  ::execv(list[0], list.data());
  ::_exit(98);
}

inline Outcome finish(const TempDir& dir, pid_t child) {
  Outcome outcome;
  siginfo_t ended;
  ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  std::ifstream counters("/proc/" + std::to_string(child) + "/io");  // still there until it is waited for
  for (std::string key; counters >> key;)
    if (key == "rchar:") counters >> outcome.bytes_read;
  int status = 0;
  struct rusage usage {};
  ::wait4(child, &status, 0, &usage);
  outcome.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = read_file(dir / "stdout");
  outcome.err = read_file(dir / "stderr");
  outcome.peak_memory = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  return outcome;
}

inline Outcome run(const TempDir& dir, std::vector<std::string> arguments, const char* root = nullptr,
                   Preparation prepare = nullptr) {
  return finish(dir, start(dir, std::move(arguments), root, prepare));
}

}  // namespace sealift::test
