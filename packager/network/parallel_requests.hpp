// SPDX-License-Identifier: Apache-2.0
// Several requests at once, each on a thread of its own, and how patient they are. When one fails for good or the user
// interrupts, the others stop within about a second instead of finishing gigabytes that nobody wants any more.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "packager/host/http_logins.hpp"

namespace sealift::packager {

struct FetchOptions {
  unsigned jobs = 4;                                     // requests at once
  int attempts = 5;                                      // in a row that bring nothing, of each file
  std::chrono::milliseconds first_pause{1000};           // doubled after each failure
  HttpLogins logins = {};                                // of the servers of indexes
  std::uint64_t most_unsized = std::uint64_t{64} << 30;  // bytes of a file whose size neither index nor server told
  bool trust_cache = false;                              // for callers that hash what is cached when they use it
};

// Throws when the work is to stop; http_request.hpp calls it while a request waits.
using StopCheck = std::function<void()>;

// Calls work(index, check) for every index below `count` on at most `jobs` threads. Throws the first exception of
// `work`, or Interrupted.
void parallel_requests(unsigned jobs, std::size_t count,
                       const std::function<void(std::size_t, const StopCheck&)>& work);

// More than a server may make us wait at once, in seconds.
inline constexpr std::uint64_t kLongestWait = 600;
inline constexpr const char* kLimitRemedy =
    "wait until the server answers again, then run the same command again: what has arrived is kept; a mirror nearby "
    "has no such limit";

// Waits after the given number of failures in a row, and at least the seconds that the server wants; throws what
// `check` throws.
void pause_before_retry(const FetchOptions& options, int failures, const StopCheck& check, std::uint64_t wanted = 0);

}  // namespace sealift::packager
