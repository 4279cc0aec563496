// SPDX-License-Identifier: Apache-2.0
// [[owner]]: what a rule decides.
#include "packager/owners/settle_owners.hpp"

#include <doctest/doctest.h>

#include "tests/support/refusal.hpp"

using namespace sealift::packager;

namespace {

constexpr const char* kSitePackages = "lib/python3.11/site-packages";
constexpr const char* kOld = "nvidia_nccl_cu12-2.27-py3-none-any.whl";
constexpr const char* kNew = "nvidia_nccl_cu13-2.28-py3-none-any.whl";

LeftOut settled(PathOwners& owners, const std::vector<OwnerRule>& rules, const std::string& site_packages) {
  std::vector<std::string> unused;
  LeftOut left_out = settle(owners, rules, site_packages, unused);
  CHECK(unused.empty());
  return left_out;
}

std::string at_site(const std::string& path) {
  return std::string(kSitePackages) + "/" + path;
}

// Two NCCLs, and two packages with a program of one name.
PathOwners owners() {
  PathOwners owners;
  for (const char* wheel : {kOld, kNew})
    for (const char* file : {"nvidia/nccl/lib/libnccl.so.2", "nvidia/nccl/include/nccl.h"})
      owners.claim(at_site(file), wheel);
  owners.claim(at_site("nvidia/nccl-tests/run"), kOld);
  owners.claim("bin/run", "one-1-py3-none-any.whl");
  owners.claim("bin/run", "two-1-py3-none-any.whl");
  return owners;
}

}  // namespace

TEST_CASE("a rule for a file, one for a folder, and one for a program decide who owns it") {
  PathOwners all = owners();
  const LeftOut left_out = settled(all,
                                   {{.path = "nvidia/nccl/lib/libnccl.so.2", .package = "nvidia-nccl-cu13"},
                                    {.path = "nvidia/nccl/include", .package = "nvidia-nccl-cu12"},
                                    {.path = "bin/run", .package = "two"}},
                                   kSitePackages);
  CHECK_NOTHROW(all.check());
  CHECK(left_out == LeftOut{{kOld, {at_site("nvidia/nccl/lib/libnccl.so.2")}},
                            {kNew, {at_site("nvidia/nccl/include/nccl.h")}},
                            {"one-1-py3-none-any.whl", {"bin/run"}}});
}

TEST_CASE("paths from the root mean the same as those from site-packages") {
  PathOwners all = owners();
  const LeftOut left_out =
      settled(all, {{.path = at_site("nvidia/nccl"), .package = "nvidia-nccl-cu13"}}, kSitePackages);
  CHECK(left_out.at(kOld).size() == 2);
  CHECK_REFUSED(all.check(), Conflict, "bin/run: one");
}

TEST_CASE("three owners leave it to one") {
  PathOwners all;
  for (const char* wheel : {"a-1-py3-none-any.whl", "b-1-py3-none-any.whl", "c-1-py3-none-any.whl"})
    all.claim("bin/run", wheel);
  const LeftOut left_out = settled(all, {{.path = "bin/run", .package = "b"}}, kSitePackages);
  CHECK(left_out.size() == 2);
  CHECK_FALSE(left_out.contains("b-1-py3-none-any.whl"));
  CHECK_NOTHROW(all.check());
}

TEST_CASE("rules that do not fit the packages are refused, all in one message") {
  const auto refused = [](const std::vector<OwnerRule>& rules, const char* why) {
    PathOwners all = owners();
    CHECK_REFUSED(settled(all, rules, kSitePackages), Usage, why);
  };
  refused({{.path = "nvidia/nothing", .package = "nvidia-nccl-cu13"}}, "nothing to decide");
  refused({{.path = "nvidia/nccl-tests/run", .package = "nvidia-nccl-cu12"}}, "nothing to decide");
  refused({{.path = "nvidia/ncc", .package = "nvidia-nccl-cu13"}}, "nothing to decide");
  refused({{.path = "nvidia/nccl", .package = "torch"}}, "does not have lib/python3.11/site-packages/nvidia/nccl/lib");
  refused(
      {{.path = "nvidia", .package = "nvidia-nccl-cu13"}, {.path = "nvidia/nccl/lib", .package = "nvidia-nccl-cu12"}},
      "another rule has decided");
  PathOwners all = owners();
  const sealift::bundle::Error error = sealift::test::refusal([&] {
    settled(all, {{.path = "a", .package = "x"}, {.path = "nvidia", .package = "y"}}, kSitePackages);
  });
  CHECK(sealift::test::mentions(error, "path = \"a\", package = \"x\": no path"));
  CHECK(sealift::test::mentions(error, "path = \"nvidia\", package = \"y\": it does not have"));
}

TEST_CASE("rules that do not fit are told together with the collisions that no rule decides") {
  PathOwners all = owners();
  const sealift::bundle::Error error = sealift::test::refusal([&] {
    settled(all, {{.path = "nvidia/nothing", .package = "x"}, {.path = "nvidia/nccl", .package = "nvidia-nccl-cu13"}},
            kSitePackages);
  });
  CHECK(sealift::test::mentions(error, "path = \"nvidia/nothing\", package = \"x\""));
  CHECK(sealift::test::mentions(error, "bin/run: one-1-py3-none-any.whl and two-1-py3-none-any.whl"));
  CHECK_FALSE(sealift::test::mentions(error, "nccl.h"));
}

TEST_CASE("a path that every wheel brings with the same bytes needs no rule, and one may name another owner") {
  const auto equal = [] {
    PathOwners owners;
    const auto digest = sealift::bundle::sha256(sealift::bundle::as_bytes(std::string()));
    for (const char* wheel : {"one-1-py3-none-any.whl", "two-1-py3-none-any.whl", "three-1-py3-none-any.whl"})
      owners.claim(at_site("nvidia/__init__.py"), wheel, digest);
    return owners;
  };
  const std::set<std::string> path = {at_site("nvidia/__init__.py")};
  PathOwners plain = equal(), named = equal();
  CHECK(settled(plain, {}, kSitePackages) ==
        LeftOut{{"two-1-py3-none-any.whl", path}, {"three-1-py3-none-any.whl", path}});
  CHECK_NOTHROW(plain.check());
  CHECK(settled(named, {{.path = "nvidia/__init__.py", .package = "two"}}, kSitePackages) ==
        LeftOut{{"one-1-py3-none-any.whl", path}, {"three-1-py3-none-any.whl", path}});
}

TEST_CASE("a file that yields gives way to one that does not, and among themselves the first stays") {
  const auto digest = [](const std::string& text) { return sealift::bundle::sha256(sealift::bundle::as_bytes(text)); };
  const std::string a = "a-1-py3-none-any.whl", b = "b-1-py3-none-any.whl", c = "c-1-py3-none-any.whl";
  const std::string path = at_site("acme/__init__.py");
  PathOwners all;
  all.claim(path, a, digest("one"), true);
  all.claim(path, b, digest("two"), true);
  SUBCASE("alone") {
    CHECK(settled(all, {}, kSitePackages) == LeftOut{{b, {path}}});
  }
  SUBCASE("beside a real one") {
    all.claim(path, c, digest("code"));
    CHECK(settled(all, {}, kSitePackages) == LeftOut{{a, {path}}, {b, {path}}});
  }
  SUBCASE("beside two real ones") {
    all.claim(path, c, digest("code"));
    all.claim(path, "d-1-py3-none-any.whl", digest("other code"));
    settled(all, {}, kSitePackages);
    CHECK_REFUSED(all.check(), Conflict, "acme/__init__.py");
  }
}

TEST_CASE("a LICENSE or a test at the top of site-packages that differs is the first one's, and said") {
  const auto digest = [](const std::string& text) { return sealift::bundle::sha256(sealift::bundle::as_bytes(text)); };
  PathOwners all;
  for (const std::string file : {"LICENSE", "README.md", "tests/conftest.py"})
    for (const char* wheel : {"one-1-py3-none-any.whl", "two-1-py3-none-any.whl"})
      all.claim(at_site(file), wheel, digest(wheel + file));
  std::vector<std::string> unused;
  CHECK(settle(all, {}, kSitePackages, unused).at("two-1-py3-none-any.whl").size() == 3);
  CHECK_NOTHROW(all.check());
  REQUIRE(unused.size() == 3);
  CHECK(unused[0] == at_site("LICENSE") + " is that of one-1-py3-none-any.whl");
  PathOwners code;
  for (const char* wheel : {"one-1-py3-none-any.whl", "two-1-py3-none-any.whl"})
    for (const std::string file : {"LICENSE.py", "torch/tests/a.py"}) code.claim(at_site(file), wheel, digest(wheel));
  settled(code, {}, kSitePackages);
  CHECK_REFUSED(code.check(), Conflict, "LICENSE.py");
  CHECK_REFUSED(code.check(), Conflict, "1 more path");
}

TEST_CASE("no rule takes a path from the interpreter or a program") {
  PathOwners all;
  all.claim("bin/python3", "the interpreter");
  all.claim("bin/python3", "evil-1-py3-none-any.whl");
  settled(all, {{.path = "bin/python3", .package = "evil"}}, kSitePackages);
  CHECK_REFUSED(all.check(), Conflict, "bin/python3: the interpreter and evil");
}
