// SPDX-License-Identifier: Apache-2.0
// Judges a configuration in a process of its own, so that a crash or a hang is a failure like any other.
// Between `compare` and the test: what dies can be shrunk, too, and no configuration sees what another left behind.
// Forked, not started again: LibTorch is loaded once. The parent must never have used it, since a fork takes no threads
// along.
#pragma once

#include "tests/train/property/compare.hpp"

#include <sys/wait.h>

#include <poll.h>
#include <unistd.h>
#include <csignal>
#include <cstring>

namespace sealift::test::property {

namespace detail {

/// All that `end` brings until it is closed, or until `seconds` have passed without its being closed.
inline std::optional<std::string> read_all(int end, int seconds) {
  std::string text;
  char part[4096];
  const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(last - std::chrono::steady_clock::now());
    pollfd event{end, POLLIN, 0};
    if (left.count() <= 0 || poll(&event, 1, static_cast<int>(left.count())) == 0) return std::nullopt;
    const auto count = ::read(end, part, sizeof part);
    if (count <= 0) return text;
    text.append(part, static_cast<std::size_t>(count));
  }
}

}  // namespace detail

/// `judge(c, hardware)` in a child; its death, or more than `seconds`, is a failure.
inline Verdict judge_in_child(const Configuration& c, const Hardware& hardware = {}, int seconds = 60) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("property test: no pipe");
  const auto child = fork();
  if (child < 0) throw std::runtime_error("property test: no process");
  if (child == 0) {
    close(ends[0]);
    for (const int each : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) std::signal(each, SIG_DFL);  // not doctest's
    at::set_num_threads(1);
    std::string answer;
    try {
      const auto verdict = judge(c, hardware);
      answer = std::to_string(verdict.refused) + " " + std::to_string(verdict.distance) + " " + verdict.failure;
    } catch (const std::exception& error) {
      answer = std::string("0 0 the test itself failed: ") + error.what();
    }
    const bool written = write(ends[1], answer.data(), answer.size()) == static_cast<ssize_t>(answer.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  const auto answer = detail::read_all(ends[0], seconds);
  close(ends[0]);
  if (!answer) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if (!answer) return {.failure = "it did not end in " + std::to_string(seconds) + " s"};
  if (WIFSIGNALED(status)) return {.failure = std::string("it was killed by a signal: ") + strsignal(WTERMSIG(status))};
  Verdict verdict;
  std::istringstream words(*answer);
  words >> verdict.refused >> verdict.distance;
  words.ignore(1);
  std::getline(words, verdict.failure, '\0');
  return verdict;
}

}  // namespace sealift::test::property
