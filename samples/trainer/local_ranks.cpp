// SPDX-License-Identifier: Apache-2.0
// Starts ranks, watches them, ends them together.
// See local_ranks.hpp. Children die with this process (PR_SET_PDEATHSIG), so none is left behind by a kill.
// Everything that a child needs is made before the fork: this process has threads, so a child may only call exec.
#include "local_ranks.hpp"

#include <sealift/train.hpp>

#include <signal.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <iostream>

namespace sealift::trainer {
namespace {

std::vector<std::string> environment_of_rank(std::int64_t rank, std::int64_t ranks, int port) {
  const auto number = std::to_string(rank), total = std::to_string(ranks);
  std::vector<std::string> result = {"RANK=" + number,
                                     "LOCAL_RANK=" + number,
                                     "WORLD_SIZE=" + total,
                                     "LOCAL_WORLD_SIZE=" + total,
                                     "MASTER_ADDR=127.0.0.1",
                                     "MASTER_PORT=" + std::to_string(port),
                                     "TORCHELASTIC_USE_AGENT_STORE=True"};
  for (char** variable = environ; *variable; ++variable) {
    // The first of two equal names counts, for getenv.
    result.emplace_back(*variable);
  }
  return result;
}

pid_t start(char** argv, const std::vector<std::string>& environment) {
  std::vector<char*> pointers;
  for (const auto& variable : environment) pointers.push_back(const_cast<char*>(variable.c_str()));
  pointers.push_back(nullptr);
  // A bare host may not have /proc mounted; then what the kernel was asked to run must do.
  const char* const program =
      access("/proc/self/exe", X_OK) == 0 ? "/proc/self/exe" : reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  const pid_t parent = getpid();
  const pid_t child = fork();
  TORCH_CHECK(child >= 0, "cannot start a rank: ", std::strerror(errno), "; use fewer --ranks");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent) execve(program, argv, pointers.data());
    _exit(127);
  }
  return child;
}

std::string describe(int status) {
  if (WIFSIGNALED(status)) return std::string("was ended by signal ") + strsignal(WTERMSIG(status));
  return "exited with " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

int run_local_ranks(std::int64_t ranks, char** argv) {
  try {
    train::local_address_towards("127.0.0.1", 1);
  } catch (const c10::Error&) {  // the store would be waited for until its time-out
    TORCH_CHECK(false, "ranks on one host meet on loopback, which is down; bring it up with: ip link set lo up");
  }
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  const c10d::TCPStore store("127.0.0.1", options);
  std::cerr << "sealift-train: starting " << ranks << " ranks on this host\n";

  std::vector<pid_t> children;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    children.push_back(start(argv, environment_of_rank(rank, ranks, store.getPort())));
  }
  int result = 0;
  for (auto left = ranks; left > 0; --left) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, 0);
    const auto child = std::find(children.begin(), children.end(), pid);
    if (child == children.end()) continue;
    const auto rank = child - children.begin();
    *child = 0;
    if (status == 0 || result != 0) continue;
    result = 1;
    // One write: ranks share this standard error.
    std::cerr << "sealift-train: rank " + std::to_string(rank) + " " + describe(status) + "; ending the other ranks\n";
    for (pid_t other : children) {
      if (other > 0) kill(other, SIGKILL);
    }
  }
  return result;
}

}  // namespace sealift::trainer
