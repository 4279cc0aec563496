// SPDX-License-Identifier: Apache-2.0
// Every way out of a folder that a path can try is an attack, and each is refused.
#include "sealift/bundle/core/safe_path.hpp"

#include "tests/support/refusal.hpp"

using namespace sealift::bundle;

TEST_CASE("ordinary relative paths are accepted as they are") {
  for (const char* good : {"a", "a/b.py", "..a/b..", "-x", "a b", "\xe6\x96\x87.txt", "...", "a/.hidden"})
    CHECK(SafePath::parse(good, "test").text() == good);
}

TEST_CASE("paths that could leave their folder or disturb a terminal are refused") {
  for (const std::string& bad :
       {std::string(""), std::string("/etc/passwd"), std::string(".."), std::string("a/../../b"), std::string("a/.."),
        std::string("./a"), std::string("a//b"), std::string("a/"), std::string("a\\b"), std::string("a\0b", 3),
        std::string("a\nb"), std::string("\x1b[2J"), std::string(256, 'a'), std::string(5000, 'a')}) {
    CAPTURE(bad.substr(0, 20));
    CHECK_REFUSED(SafePath::parse(bad, "the test"), Format, "the test");
  }
}

TEST_CASE("messages never carry control characters from hostile names") {
  const Error error = sealift::test::refusal([] { SafePath::parse("/\x1b]0;evil\x07", "x"); });
  CHECK(std::string(error.what()).find('\x1b') == std::string::npos);
}

TEST_CASE("a symbolic link may point around its tree but not out of it") {
  const SafePath link = SafePath::parse("lib/python3/x", "test");
  CHECK(link_stays_inside(link, "y"));
  CHECK(link_stays_inside(link, "../../bin/python"));
  CHECK_FALSE(link_stays_inside(link, "../../../etc/passwd"));
  CHECK_FALSE(link_stays_inside(link, "a/../../../../b"));
  CHECK_FALSE(link_stays_inside(link, "/etc/passwd"));
  CHECK_FALSE(link_stays_inside(link, ""));
}
