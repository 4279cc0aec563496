// SPDX-License-Identifier: Apache-2.0
// Starts ranks, waits for them, ends them together.
// See local_ranks.hpp. start_process has ranks die with this process, so a kill leaves none behind.
#include "trainer/ranks/local_ranks.hpp"

#include "bundle/host/start_process.hpp"
#include "trainer/failure.hpp"
#include "trainer/ranks/enough_limits.hpp"

#include <sealift/train.hpp>

#include <signal.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <thread>

namespace sealift::trainer {
namespace {

using Clock = std::chrono::steady_clock;

/// How long the other ranks have to report, after one failed and said why ...
constexpr auto kAfterFailure = std::chrono::milliseconds(500);
/// ... or was killed without a message: the core looks for the cause for a second.
constexpr auto kAfterKill = std::chrono::seconds(2);

std::vector<std::string> environment_of_rank(const train::Launch& host, std::int64_t local_rank) {
  return bundle::environment_with({{"RANK", std::to_string(host.rank + local_rank)},
                                   {"LOCAL_RANK", std::to_string(local_rank)},
                                   {"WORLD_SIZE", std::to_string(host.world_size)},
                                   {"LOCAL_WORLD_SIZE", std::to_string(host.local_world_size)},
                                   {"MASTER_ADDR", host.master_addr},
                                   {"MASTER_PORT", std::to_string(host.master_port)},
                                   {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
}

/// This program again, with our streams and in our process group.
pid_t start(char** argv, std::vector<std::string> environment) {
  // A bare host may not have /proc mounted; then the path that the kernel was given is used.
  const char* const program =
      access("/proc/self/exe", X_OK) == 0 ? "/proc/self/exe" : reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  bundle::ProcessStart rank{.arguments = {},
                            .program = program,
                            .environment = std::move(environment),
                            .streams = {0, 1, 2},
                            .of_login = true};
  for (; *argv; ++argv) rank.arguments.emplace_back(*argv);
  const pid_t child = bundle::start_process(rank);
  TORCH_CHECK(child >= 0, "cannot start a rank: ", std::strerror(errno), "; use fewer --ranks");
  return child;
}

std::string describe(int status) {
  if (WIFSIGNALED(status)) return std::string("was ended by signal ") + strsignal(WTERMSIG(status));
  return "exited with " + std::to_string(WEXITSTATUS(status));
}

/// Throws without loopback; ranks would wait for the store until the time-out.
void check_loopback() {
  try {
    train::local_address_towards("127.0.0.1", 1);
  } catch (const c10::Error&) {
    TORCH_CHECK(false, "ranks on one host meet on loopback, which is down; bring it up with: ip link set lo up");
  }
}

/// The store at which all ranks meet, if this host has rank 0. Sets a free port where the launch has none.
train::Store serve_store(train::Launch& host) {
  if (host.rank > 0) return {};
  if (host.master_port == 0) check_loopback();
  auto store = train::serve_store(host.master_port, host.master_addr);
  host.master_port = store->getPort();
  return store;
}

std::atomic<bool> told_to_end = false;

/// Passes SIGTERM on to `children`, once: ranks save and end in order, as this process waits for them.
void pass_on(const std::vector<pid_t>& children, bool& passed) {
  if (!told_to_end || std::exchange(passed, true)) return;
  for (const pid_t child : children) {
    if (child > 0) kill(child, SIGTERM);
  }
}

/// The next child that ended; nothing once `deadline` has passed.
std::optional<pid_t> next_to_end(int& status, std::optional<Clock::time_point> deadline,
                                 const std::vector<pid_t>& children, bool& passed) {
  for (;;) {
    if (const pid_t pid = waitpid(-1, &status, WNOHANG); pid != 0) return pid;
    if (deadline && Clock::now() >= *deadline) return std::nullopt;
    pass_on(children, passed);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

/// A rank's exit code; 128 and its number for a signal.
int code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// The exit code of a rank that ended in order before its job was finished; 0: of any other.
int unfinished(int status) {
  if (WIFSIGNALED(status)) return told_to_end && WTERMSIG(status) == SIGTERM ? kToldToEnd : 0;
  const int code = WEXITSTATUS(status);
  return code == kToldToEnd || code == kOutOfTime ? code : 0;
}

/// Waits for all; after the first failure the others have `kAfterFailure` or `kAfterKill` left.
LocalEnd wait_for(std::vector<pid_t> children, std::int64_t first_rank) {
  std::optional<Clock::time_point> deadline;
  bool passed = false;
  LocalEnd end;   // of the rank that failed first
  int early = 0;  // the code of ranks that ended in order, before the job was finished
  for (auto left = children.size(); left > 0;) {
    int status = 0;
    const auto pid = next_to_end(status, deadline, children, passed);
    if (!pid) {
      for (pid_t child : children) {
        if (child > 0) kill(child, SIGKILL);
      }
      deadline.reset();
      continue;
    }
    const auto child = std::find(children.begin(), children.end(), *pid);
    if (child == children.end()) continue;
    *child = 0;
    --left;
    if (status == 0 || end.failed) continue;
    if (const int code = unfinished(status); code > 0) {
      early = code;
      continue;
    }
    end = {.code = code_of(status), .failed = FailedRank{first_rank + (child - children.begin()), status}};
    deadline = Clock::now() + (WIFSIGNALED(status) ? kAfterKill : kAfterFailure);
    say("rank " + std::to_string(end.failed->rank) + " " + describe(status) + "; ending the other ranks");
  }
  if (!end.failed) return {.code = early};
  if (told_to_end) end.code = kToldToEnd;
  return end;
}

}  // namespace

train::Launch on_this_host(std::int64_t ranks) {
  return {.world_size = ranks,
          .local_world_size = ranks,
          .is_node = true,
          .master_addr = "127.0.0.1",
          .source = "the host of all " + std::to_string(ranks) + " ranks (--ranks)"};
}

LocalEnd run_local_ranks(const train::Launch& launch, char** argv) {
  auto host = launch;
  require_files(files_needed(host.world_size));
  require_threads(threads_needed(host.local_world_size, 1));
  const auto store = serve_store(host);
  say("starting " + std::to_string(host.local_world_size) + " ranks: " + host.source);
  std::signal(SIGTERM, [](int) { told_to_end = true; });
  std::vector<pid_t> children;
  for (std::int64_t local = 0; local < host.local_world_size; ++local) {
    children.push_back(start(argv, environment_of_rank(host, local)));
  }
  return wait_for(std::move(children), host.rank);
}

}  // namespace sealift::trainer
