// SPDX-License-Identifier: Apache-2.0
// How sealift-train and sealift-verify report a failure: one line on standard error and an exit code.
// For `main` and for verbs whose ranks also tell each other.
// Arguments and files that cannot be used are std::invalid_argument, or bundle::Error of the rooms that all programs
// share; everything else is a bad result.
#pragma once

#include "sealift/bundle/core/error.hpp"

#include <c10/util/Exception.h>

#include <cerrno>
#include <iostream>
#include <stdexcept>
#include <string>

namespace sealift::trainer {

/// Exit codes: 0 is good.
inline constexpr int kBad = 1;         ///< a rank failed, or a check does not hold
inline constexpr int kCannotTell = 2;  ///< arguments or files

// A job that ended in order before its last step, with what it goes on from: 0 is for one that is finished.
inline constexpr int kToldToEnd = 143;  ///< SIGTERM told it to: 128 + 15, as of a process that the signal ended
inline constexpr int kOutOfTime = 124;  ///< its time limit was reached, as of timeout(1)

// The key "ended_by" of such a job's result.
inline constexpr const char* kBySigterm = "SIGTERM";
inline constexpr const char* kByTimeLimit = "time_limit";

/// Writes a line after the program's name to standard error, in one write, since ranks share it.
inline void say(const std::string& line) {
  std::cerr << std::string(program_invocation_short_name) + ": " + line + '\n';
}

/// The message of `error` in one line, without LibTorch's stack trace.
inline std::string text_of(const std::exception& error) {
  if (const auto* shared = dynamic_cast<const bundle::Error*>(&error)) {
    const auto& facts = shared->facts();
    const auto part = [](const char* before, const std::string& text) { return text.empty() ? "" : before + text; };
    return facts.what + part(", ", facts.where) + part(": ", facts.got) + part("; expected ", facts.expected) +
           part("; ", facts.next);
  }
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return torch_error ? torch_error->what_without_backtrace() : error.what();
}

inline int exit_code_of(const std::exception& error) {
  const bool unusable = dynamic_cast<const std::invalid_argument*>(&error) != nullptr ||
                        dynamic_cast<const bundle::Error*>(&error) != nullptr;
  return unusable ? kCannotTell : kBad;
}

}  // namespace sealift::trainer
