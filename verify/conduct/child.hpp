// SPDX-License-Identifier: Apache-2.0
// Runs a program to its end, or to a time limit, and keeps what it said.
// For checks that use the carried programs as a site does: sealift-train, sealift-install, Python.
// A program of its own, so that what it does to memory, threads and connections does not reach the other checks.
#pragma once

#include "bundle/host/start_process.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sealift::verify {

using bundle::Variable;

struct ChildResult {
  int code = 0;  ///< exit code; 128 and its number for a signal
  bool timed_out = false;
  std::string out, err;  ///< at most the last 1 MiB of each
  bool good() const { return code == 0 && !timed_out; }
};

/// What stands beside a child while it runs.
struct ChildHook {
  virtual ~ChildHook() = default;
  virtual bool in_child() = 0;  ///< between fork and exec: only what may be called there; false: give up
  virtual void started(std::int64_t process) = 0;
  virtual void wait_a_moment() = 0;  ///< instead of sleeping, about 10 ms
  virtual void ended() = 0;          ///< the child has ended; what it left behind is killed after this
};

/// Runs `argv` (argv[0]: a path, or a name in PATH) in `folder` with this process's environment changed by `variables`.
/// After `limit`, or as soon as `kill_when` says so, it and all that it started are killed. Throws std::runtime_error
/// when it cannot be started.
ChildResult run_child(const std::vector<std::string>& argv, const std::vector<Variable>& variables,
                      std::chrono::seconds limit, const std::filesystem::path& folder,
                      const std::function<bool()>& kill_when = {}, ChildHook* hook = nullptr);

}  // namespace sealift::verify
