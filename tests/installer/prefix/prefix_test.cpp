// SPDX-License-Identifier: Apache-2.0
// The names inside a prefix.
#include "installer/prefix/prefix.hpp"

#include <doctest/doctest.h>

using namespace sealift::installer;

TEST_CASE("a prefix is absolute and has no slash at its end") {
  CHECK(Prefix("/opt/x/").folder() == "/opt/x");
  CHECK(Prefix("/opt/x/../y").folder() == "/opt/y");
  CHECK(Prefix("rel").folder().is_absolute());
  CHECK(Prefix("/opt/x").generation(12).filename() == "0012");
}
