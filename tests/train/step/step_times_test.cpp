// SPDX-License-Identifier: Apache-2.0
// Seconds of activities that nest and overlap.
#include <sealift/train/step/step_times.hpp>

#include <doctest/doctest.h>

using namespace sealift::train;
using enum Activity;

TEST_CASE("nested units count once, and forward that is run again inside of a backward is backward") {
  const auto times = times_of({{Forward, "root", 0, 10},
                               {Forward, "layer0", 1, 4},
                               {Forward, "layer1", 5, 9},
                               {Backward, "root", 11, 31},
                               {Backward, "layer1", 12, 20},
                               {Forward, "layer1", 13, 16}});
  CHECK(times.forward == doctest::Approx(10));
  CHECK(times.backward == doctest::Approx(20));
  CHECK(times.exposed() == 0);
}

TEST_CASE("collectives that overlap are in flight once, and only waits are exposed") {
  const auto times = times_of({{Forward, "root", 0, 10},
                               {Gather, "layer0", 0, 3},
                               {Gather, "layer1", 2, 7},
                               {GatherWait, "layer0", 1, 3},
                               {GatherWait, "layer1", 6, 7},
                               {Backward, "root", 10, 20},
                               {Reduce, "layer1", 12, 22},
                               {Reduce, "layer0", 15, 24},
                               {GatherWait, "layer1", 11, 11.5},
                               {ReduceWait, "layer1", 18, 22},
                               {ReduceWait, "layer0", 22, 24}});
  CHECK(times.gather == doctest::Approx(7));
  CHECK(times.reduce == doctest::Approx(12));
  CHECK(times.gather_wait == doctest::Approx(3.5));
  CHECK(times.reduce_wait == doctest::Approx(6));
  CHECK(times.exposed() == doctest::Approx(9.5));
  CHECK(times.forward_wait == doctest::Approx(3));  // not those in backward, nor those after it
}

TEST_CASE("the times of steps add up") {
  const std::vector<TimedActivity> step = {{Forward, "root", 0, 2}, {GatherWait, "root", 0, 1},
                                           {Gather, "root", 0, 1},  {Backward, "root", 2, 5},
                                           {Reduce, "root", 4, 6},  {ReduceWait, "root", 5, 6}};
  auto sum = times_of(step);
  sum += times_of(step);
  CHECK(sum.forward == doctest::Approx(4));
  CHECK(sum.backward == doctest::Approx(6));
  CHECK(sum.gather == doctest::Approx(2));
  CHECK(sum.reduce == doctest::Approx(4));
  CHECK(sum.gather_wait == doctest::Approx(2));
  CHECK(sum.reduce_wait == doctest::Approx(2));
  CHECK(sum.forward_wait == doctest::Approx(2));
  CHECK(times_of({}).exposed() == 0);
}
