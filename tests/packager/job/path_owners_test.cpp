// SPDX-License-Identifier: Apache-2.0
// One owner for every installed path.
#include "packager/job/path_owners.hpp"

#include <doctest/doctest.h>

#include "sealift/bundle/wheel/package_owners.hpp"
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

TEST_CASE("a path that wheels bring with the same bytes is marked, so that one of them is enough") {
  const auto digest = [](const char* text) { return sealift::bundle::sha256(sealift::bundle::as_bytes(text)); };
  PathOwners owners;
  owners.claim("nvidia/__init__.py", "one.whl", digest(""));
  owners.claim("nvidia/__init__.py", "two.whl", digest(""));
  owners.claim("bin/run", "the program", digest("x"));
  owners.claim("bin/run", "one.whl", digest("y"));
  owners.claim("share/x", "the data x");
  owners.claim("share/x", "one.whl", digest("x"));
  REQUIRE(owners.contested().size() == 3);
  CHECK(owners.contested()[0].equal);
  CHECK_FALSE(owners.contested()[1].equal);
  CHECK_FALSE(owners.contested()[2].equal);
  owners.claim("nvidia/__init__.py", "three.whl", digest("other"));
  CHECK_FALSE(owners.contested()[0].equal);
}

TEST_CASE("a file where another package needs a folder is refused") {
  PathOwners owners;
  owners.claim("lib/demo", "one.whl");
  owners.claim("lib/demo/core.py", "two.whl");
  CHECK_REFUSED(owners.check(), Conflict, "lib/demo: one.whl and two.whl, a file of the first and a folder");
}

TEST_CASE("two wheels of one library are told once, beside every other two") {
  PathOwners owners;
  for (const std::string file : {"libnccl.so.2", "nccl.h", "LICENSE"})
    for (const std::string wheel : {"nccl_cu12.whl", "nccl_cu13.whl"}) owners.claim("nvidia/nccl/" + file, wheel);
  owners.claim("bin/run", "one.whl");
  owners.claim("bin/run", "two.whl");
  const sealift::bundle::Error error = sealift::test::refusal([&] { owners.check(); });
  CHECK(
      sealift::test::mentions(error, "nvidia/nccl/libnccl.so.2: nccl_cu12.whl and nccl_cu13.whl, and 2 more path(s)"));
  CHECK(sealift::test::mentions(error, "bin/run: one.whl and two.whl"));
}

TEST_CASE("a wheel that puts a file into another one's package is a conflict, a shared namespace is none") {
  sealift::bundle::PackageOwners owners;
  owners.claim("torch/__init__.py", "torch.whl");
  owners.claim("torch/nn/__init__.py", "torch.whl");
  owners.claim("nvidia/cublas/lib.so", "cublas.whl");
  owners.claim("nvidia/nccl/lib.so", "nccl.whl");
  owners.claim("six.py", "six.whl");
  owners.check();
  owners.claim("torch/evil.py", "evil.whl");
  CHECK_REFUSED(owners.check(), Conflict, "torch/evil.py");
  CHECK_REFUSED(owners.check(), Conflict, "torch.whl");
  CHECK_REFUSED(owners.check(), Conflict, "evil.whl");
}
