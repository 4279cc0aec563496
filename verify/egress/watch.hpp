// SPDX-License-Identifier: Apache-2.0
// Runs a program and sees each of its attempts to leave the machine, those of its threads and descendants too.
// Beside run_child, for the checks of this room and of others that start what a site runs.
// The kernel stops connect and send calls and asks this process (seccomp's user notification): no root, no namespace.
// It observes and is no wall: docs/verify_checks_machine.md says what it cannot see.
#pragma once

#include "verify/conduct/check_kind.hpp"
#include "verify/conduct/child.hpp"
#include "verify/egress/destination.hpp"

namespace sealift::verify {

/// One attempt, or several equal ones.
struct Attempt {
  Phrase program;            ///< its name in /proc, or that it is one of this run's
  std::string command_line;  ///< at most 500 bytes
  std::string call;          ///< "connect", "sendto", "sendmsg", "sendmmsg"
  std::string destination;   ///< Destination::text(), or that it could not be read
  std::string name;          ///< what DNS was asked for; may be empty
  std::string python;        ///< the Python stack, innermost first, a line each; may be empty
  std::int64_t times = 1;
};

struct WatchedResult {
  ChildResult child;
  std::vector<Attempt> attempts;  ///< at most 200 different ones
  std::int64_t calls = 0;         ///< that the kernel asked about
  std::int64_t io_uring = 0;      ///< requests for io_uring, whose calls cannot be watched: refused as if unknown
  std::vector<std::string> left;  ///< command lines of processes that were still there five seconds after it had ended
  std::string fault;              ///< why it could not be watched, or not to its end; empty: it was
  bool started = false;           ///< false: the program was not begun, since it could not be watched
};

/// run_child, watched: calls that lead outside `allowed` are answered ENETUNREACH and listed. What the program leaves
/// running is listed, watched for five seconds more, then killed. Throws NotRun where the kernel or the site's
/// container does not let a process be watched; std::runtime_error as run_child does.
WatchedResult run_watched(const std::vector<std::string>& argv, const std::vector<Variable>& variables,
                          std::chrono::seconds limit, const std::filesystem::path& folder, const Allowed& allowed);

/// The same, but calls that lead outside are listed and go on, so that the program does what it always does. Where it
/// cannot be watched, `fault` says why.
WatchedResult observe(const std::vector<std::string>& argv, const std::vector<Variable>& variables,
                      std::chrono::seconds limit, const std::filesystem::path& folder, const Allowed& allowed,
                      const std::function<bool()>& kill_when);

nlohmann::json attempts_json(const std::vector<Attempt>& attempts);

}  // namespace sealift::verify
