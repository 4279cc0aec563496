// SPDX-License-Identifier: Apache-2.0
// Faults of wheels, told together: each with what to do about it.
#include "packager/owners/wheel_faults.hpp"

#include <doctest/doctest.h>

#include "tests/support/refusal.hpp"

using sealift::bundle::Error;
using sealift::bundle::ErrorCode;
using sealift::packager::WheelFaults;

TEST_CASE("a fault of a wheel that says no next step gets two that can be pasted, and one that says it keeps its own") {
  WheelFaults faults(2);
  CHECK(faults.keep(0, "My_Wheel-1.0+cu1-py3-none-any.whl", Error(ErrorCode::Format, {.what = "a zip is not one"})));
  const Error one = sealift::test::refusal([&] { faults.refuse(); });
  CHECK(sealift::test::mentions(one, "constraints = [\"my-wheel != 1.0+cu1\"]"));
  CHECK(sealift::test::mentions(one, "excludes = [\"my-wheel\"]"));
  CHECK(faults.keep(1, "b-1-py3-none-any.whl", Error(ErrorCode::Conflict, {.what = "taken", .next = "do that"})));
  const Error both = sealift::test::refusal([&] { faults.refuse(); });
  CHECK(sealift::test::mentions(both, "2 wheels are not acceptable"));
  CHECK(sealift::test::mentions(both, "do that"));
  CHECK_FALSE(sealift::test::mentions(both, "\"b\""));
}

TEST_CASE("faults of the network, not of a wheel's contents, are not kept") {
  WheelFaults faults(1);
  CHECK_FALSE(faults.keep(0, "a-1-py3-none-any.whl", Error(ErrorCode::Network, {.what = "no answer"})));
  CHECK_FALSE(faults.any());
  CHECK_NOTHROW(faults.refuse());
}
