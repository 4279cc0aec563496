// SPDX-License-Identifier: Apache-2.0
// Processes and signals; see ranks.hpp.
// Last step of sealift-launch.
// One thread that waits for signals, of which a child's end is one: nothing is polled, and no handler runs.
#include "launch/ranks.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "bundle/core/foreign_text.hpp"

namespace sealift::launch {

namespace {

using Clock = std::chrono::steady_clock;

/// How long the other ranks have to end by themselves once one has failed.
constexpr auto kPatience = std::chrono::seconds(10);
/// The same where somebody has asked all of them to end: they may be saving what they have.
constexpr auto kPatienceWhenAsked = std::chrono::seconds(30);

constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

sigset_t awaited_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int signal : kForwarded) sigaddset(&set, signal);
  return set;
}

void set(const std::vector<Variable>& variables) {
  for (const auto& [name, value] : variables) {
    if (value)
      setenv(name.c_str(), value->c_str(), 1);
    else
      unsetenv(name.c_str());
  }
}

std::vector<std::string> words_of(char** command) {
  std::vector<std::string> words;
  for (; *command != nullptr; ++command) words.emplace_back(*command);
  return words;
}

std::string own_host() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "an unknown host";
}

struct Rank {
  std::int64_t number = 0;
  pid_t process = 0;
  bool running = true;
};

pid_t start_rank(const std::vector<std::string>& command, const Place& place, std::int64_t index) {
  return bundle::start_process({.arguments = command,
                                .environment = bundle::environment_with(variables_of_rank(place, index)),
                                .streams = {-1, STDOUT_FILENO, STDERR_FILENO},
                                .kin = bundle::Kin::Session,
                                .of_login = true,
                                .complaint = "sealift-launch: " + bundle::one_line(command[0]) +
                                             " cannot be started; is it in PATH and executable? "});
}

int code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string ending_of(int status) {
  if (!WIFSIGNALED(status)) return "ended with code " + std::to_string(WEXITSTATUS(status));
  return "was ended by signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
}

class Ranks {
 public:
  Ranks(char** command, const Place& place) : world_size_(place.launch.world_size) {
    const std::vector<std::string> words = words_of(command);
    sigprocmask(SIG_BLOCK, &awaited_, nullptr);
    for (std::int64_t i = 0; i < place.ranks; ++i) {
      const pid_t child = start_rank(words, place, i);
      if (child < 0) {
        cannot_start(place.launch.rank + i);
        return;
      }
      ranks_.push_back({.number = place.launch.rank + i, .process = child});
    }
  }

  int wait() {
    while (running()) {
      const int signal = next_signal();
      if (signal == SIGCHLD)
        collect();
      else if (signal > 0)
        forward(signal);
      else if (deadline_ && Clock::now() >= *deadline_)
        send(SIGKILL);
    }
    return code_;
  }

 private:
  bool running() const {
    for (const Rank& rank : ranks_)
      if (rank.running) return true;
    return false;
  }

  /// The next signal; 0 or less when the deadline has passed, or for nothing.
  int next_signal() const {
    if (!deadline_) return sigwaitinfo(&awaited_, nullptr);
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(*deadline_ - Clock::now()).count();
    const auto wait = left > 0 ? left : 50'000'000;  // after SIGKILL: until the kernel has ended them
    const timespec time{.tv_sec = wait / 1'000'000'000, .tv_nsec = wait % 1'000'000'000};
    return sigtimedwait(&awaited_, nullptr, &time);
  }

  /// To each rank that runs, with all that it has started and that has not left its session.
  void send(int signal) const {
    for (const Rank& rank : ranks_)
      if (rank.running && kill(-rank.process, signal) != 0) kill(rank.process, signal);  // it has no session yet
  }

  void forward(int signal) {
    asked_ = asked_ || signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
    send(signal);
  }

  void collect() {
    int status = 0;
    for (pid_t child; (child = waitpid(-1, &status, WNOHANG)) > 0;)
      for (Rank& rank : ranks_)
        if (rank.process == child) ended(rank, status);
  }

  void ended(Rank& rank, int status) {
    rank.running = false;
    if (status == 0 || code_ != 0) return;
    code_ = code_of(status);
    say("rank " + std::to_string(rank.number) + " of " + std::to_string(world_size_) + " on " + own_host() +
        ", process " + std::to_string(rank.process) + ", " + ending_of(status) +
        (running() && !asked_ ? "; ending the others" : ""));
    if (!asked_) send(SIGTERM);
    deadline_ = Clock::now() + (asked_ ? kPatienceWhenAsked : kPatience);
  }

  void cannot_start(std::int64_t number) {
    say("rank " + std::to_string(number) + " cannot be started: " + std::strerror(errno) + "; use a smaller --nproc");
    code_ = 1;
    send(SIGKILL);
  }

  const sigset_t awaited_ = awaited_signals();
  std::int64_t world_size_;
  std::vector<Rank> ranks_;
  bool asked_ = false;  ///< SIGINT, SIGTERM or SIGHUP was passed on, so each rank has been told to end
  int code_ = 0;
  std::optional<Clock::time_point> deadline_;
};

}  // namespace

void say(const std::string& line) {
  const std::string shown = "sealift-launch: " + bundle::terminal_text(bundle::continued(line, 4, 4)) + "\n";
  std::fwrite(shown.data(), 1, shown.size(), stderr);
}

int become(char** command, const std::vector<Variable>& variables) {
  set(variables);
  const int error = bundle::become_program(words_of(command));
  say(std::string(command[0]) + " cannot be started: " + std::strerror(error) +
      "; see that it is in PATH and executable");
  return error == ENOENT ? 127 : 126;
}

int run_ranks(char** command, const Place& place) {
  return Ranks(command, place).wait();
}

}  // namespace sealift::launch
