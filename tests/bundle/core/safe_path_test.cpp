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

TEST_CASE("a file of a wheel may be named in decomposed letters, as a Mac writes them, and nothing else may") {
  const std::string decomposed = "pkg/Ge\xcc\x81n\xc3\xa9rique.txt";
  CHECK(SafePath::parse_published(decomposed, "test").text() == decomposed);
  CHECK_REFUSED(SafePath::parse(decomposed, "the manifest"), Format, "normal form C");
  for (const std::string& bad : {std::string("../e\xcc\x81"), std::string("e\xcc\x81\n"), std::string("e\xcc\x81\xff"),
                                 std::string("e\xcc\x81\xc2\x85"), std::string()})
    CHECK_REFUSED(SafePath::parse_published(bad, "the wheel"), Format, "the wheel");
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
