// SPDX-License-Identifier: Apache-2.0
#include "sealift/bundle/core/parallel_for.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

using sealift::bundle::parallel_for;

TEST_CASE("every piece of work is done once, however many threads there are") {
  for (const unsigned threads : {0u, 1u, 3u, 50u})
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{20}}) {
      CAPTURE(threads);
      std::vector<std::atomic<int>> done(count);
      parallel_for(threads, count, [&](std::size_t index) { ++done[index]; });
      for (const std::atomic<int>& times : done) CHECK(times == 1);
    }
}

TEST_CASE("after a failure nothing more is begun, and the failure is thrown") {
  std::vector<std::size_t> begun;
  const auto work = [&](std::size_t index) {
    begun.push_back(index);
    if (index == 3) throw std::runtime_error("the fourth");
  };
  CHECK_THROWS_WITH_AS(parallel_for(1, 10, work), "the fourth", std::runtime_error);
  CHECK(begun == std::vector<std::size_t>{0, 1, 2, 3});
  CHECK_THROWS_AS(parallel_for(4, 1000, [](std::size_t index) { index == 0 ? throw std::runtime_error("") : void(); }),
                  std::runtime_error);
}
