// SPDX-License-Identifier: Apache-2.0
// One owner for every installed path.
#include "packager/path_owners.hpp"

#include <doctest/doctest.h>

#include "tests/support/refusal.hpp"

using sealift::packager::PathOwners;

TEST_CASE("a path with two owners is refused with both names") {
  PathOwners owners;
  owners.claim("lib/a.py", "one.whl");
  owners.claim("lib/b.py", "two.whl");
  CHECK_NOTHROW(owners.check());
  owners.claim("lib/a.py", "two.whl");
  CHECK_REFUSED(owners.check(), Conflict, "lib/a.py: one.whl and two.whl");
}

TEST_CASE("a file where another package needs a folder is refused") {
  PathOwners owners;
  owners.claim("lib/demo", "one.whl");
  owners.claim("lib/demo/core.py", "two.whl");
  CHECK_REFUSED(owners.check(), Conflict, "a file of one.whl and a folder of two.whl");
}
