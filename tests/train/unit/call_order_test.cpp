// SPDX-License-Identifier: Apache-2.0
// call_order.hpp: the units expected next, as numbers alone.
// No tensor, no rank. schedule_test.cpp is about the memory and gathers that the guesses cost.
// Unit 0 is the root.
#include "tests/train/fixture.hpp"

using namespace sealift::test;
using Numbers = std::vector<std::size_t>;

namespace {

void run_forward(CallOrder& order, const Numbers& units) {
  order.start_forward();
  for (const auto unit : units) order.before_forward(unit, 1, /*record=*/true);
}

}  // namespace

TEST_CASE("the first forward expects nothing, the second what the first did") {
  CallOrder order;
  order.start_forward();
  CHECK(order.before_forward(0, 2, true).empty());
  CHECK(order.before_forward(1, 2, true).empty());
  CHECK(order.before_forward(2, 2, true).empty());
  order.start_forward();
  CHECK(order.before_forward(0, 2, true) == Numbers{1, 2});
  CHECK(order.before_forward(1, 2, true) == Numbers{2});
  CHECK(order.before_forward(2, 2, true).empty());
}

TEST_CASE("a unit that runs twice is expected twice, but not while it runs") {
  CallOrder order;
  run_forward(order, {0, 1, 1, 2, 1});
  order.start_forward();
  CHECK(order.before_forward(0, 3, true) == Numbers{1, 2});
  CHECK(order.before_forward(1, 2, true) == Numbers{2});
  CHECK(order.before_forward(1, 2, true) == Numbers{2});
  CHECK(order.before_forward(2, 2, true) == Numbers{1});
}

TEST_CASE("a call that was not expected yields no guess, and the next that was is found again") {
  CallOrder order;
  run_forward(order, {0, 1, 2, 3});
  order.start_forward();
  order.before_forward(0, 1, true);
  CHECK(order.before_forward(7, 1, true).empty());
  CHECK(order.before_forward(2, 1, true) == Numbers{3});
  order.start_forward();
  CHECK(order.before_forward(7, 1, true) == Numbers{2});  // what ran last, not what ran before that
}

TEST_CASE("a forward that is not recorded changes no expectation") {
  CallOrder order;
  run_forward(order, {0, 1, 2});
  order.start_forward();
  for (const std::size_t unit : {0, 2, 1}) order.before_forward(unit, 1, /*record=*/false);
  order.start_forward();
  CHECK(order.before_forward(0, 2, true) == Numbers{1, 2});
}

TEST_CASE("backward goes the calls in reverse, from wherever it starts") {
  CallOrder order;
  const auto first = order.after_forward(1);
  const auto second = order.after_forward(2);
  const auto third = order.after_forward(2);
  const auto root = order.after_forward(0);
  CHECK(order.before_backward(root, 2) == Numbers{2, 1});
  CHECK(order.before_backward(third, 1) == Numbers{1});
  CHECK(order.before_backward(second, 1) == Numbers{1});
  CHECK(order.before_backward(first, 1).empty());
  order.forget_calls();
  CHECK(order.before_backward(root, 2).empty());
}
