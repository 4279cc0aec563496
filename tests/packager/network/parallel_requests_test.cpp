// SPDX-License-Identifier: Apache-2.0
// Requests on threads: every one is made, and after a failure none goes on.
#include "packager/network/parallel_requests.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>

using namespace sealift::packager;

TEST_CASE("every request is made, by no more threads than jobs") {
  std::atomic<int> running{0}, most{0}, made{0};
  parallel_requests(3, 50, [&](std::size_t, const StopCheck& check) {
    const int now = ++running;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) continue;
    check();
    ++made;
    --running;
  });
  CHECK(made == 50);
  CHECK(most <= 3);
}

TEST_CASE("no jobs at a time means one") {
  int made = 0;
  parallel_requests(0, 3, [&](std::size_t, const StopCheck&) { ++made; });
  CHECK(made == 3);
}

TEST_CASE("the first failure is thrown, and stops a request that waits for its next attempt") {
  const FetchOptions patient{.first_pause = std::chrono::hours(1)};
  CHECK_THROWS_WITH(parallel_requests(2, 2,
                                      [&](std::size_t index, const StopCheck& check) {
                                        if (index == 1) throw std::runtime_error("refused");
                                        pause_before_retry(patient, 1, check);
                                      }),
                    "refused");
}
