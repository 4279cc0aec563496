// SPDX-License-Identifier: Apache-2.0
// Names that are equal for some, and links that lead out: what every reader of an archive relies on.
#include "sealift/bundle/archive/archive_tree.hpp"

#include <doctest/doctest.h>

#include "bundle/core/unicode.hpp"

using namespace sealift::bundle;

namespace {

using Links = std::map<std::string, std::string>;

std::string culprit(const Links& links) {
  const auto* link = link_that_leads_out(links);
  return link == nullptr ? "" : link->first;
}

SafePath path(const std::string& text) {
  return SafePath::parse(text, "");
}

}  // namespace

TEST_CASE("links that stay inside are fine, however they go about it") {
  CHECK(culprit({}) == "");
  CHECK(culprit({{"lib64", "lib"}, {"short", "lib64/x/../x/deep"}, {"nowhere", "lib/none"}}) == "");
  CHECK(culprit({{"a/up", ".."}, {"b", "a/up/c"}}) == "");
}

TEST_CASE("a link that leads out through others is found, whatever each of them says alone") {
  CHECK(culprit({{"d/up", ".."}, {"out", "d/up/.."}}) == "out");
  CHECK(culprit({{"a", ".."}}) == "a");
  CHECK(culprit({{"x", "y/z/../.."}, {"y/z", "."}}) == "x");
  CHECK(culprit({{"x", "y/z/../.."}}) == "");
}

TEST_CASE("links in a circle, and more of them than Linux follows, are found") {
  CHECK(culprit({{"a", "a"}}) == "a");
  CHECK(culprit({{"a", "b"}, {"b", "c/x"}, {"c", "a"}}) != "");
  Links stairs;
  for (int i = 100; i < 141; ++i) stairs["l" + std::to_string(i)] = "l" + std::to_string(i + 1);
  CHECK(culprit(stairs) == "l100");
  stairs.erase("l140");
  CHECK(culprit(stairs) == "");
}

TEST_CASE("links that would take forever to follow are refused instead") {
  Links links;
  std::string many;
  for (int i = 0; i < 2000; ++i) many += "a/../";
  for (int i = 0; i < 39; ++i) links["l" + std::to_string(i)] = many + "l" + std::to_string(i + 1);
  for (int i = 0; i < 20'000; ++i) links["m" + std::to_string(i)] = many + "l0";
  CHECK(culprit(links) != "");
}

TEST_CASE("a path stands once, and nothing lies below what is no folder") {
  ArchiveTree tree;
  CHECK(tree.add_file(path("a/b")) == nullptr);
  CHECK(tree.add_folder(path("a")) == nullptr);  // was only implied so far
  CHECK(std::string(tree.add_folder(path("a"))) == "a name stands twice");
  CHECK(std::string(tree.add_file(path("a"))) == "a name stands twice");
  CHECK(std::string(tree.add_link(path("a/b"), "x")) == "a name stands twice");
  CHECK(std::string(tree.add_file(path("a/b/c"))) == "a member's parent is not a folder");
  CHECK(tree.add_link(path("l"), "a") == nullptr);
  CHECK(std::string(tree.add_file(path("l/x"))) == "a member's parent is not a folder");
  CHECK(tree.links() == Links{{"l", "a"}});
}

TEST_CASE("names are UTF-8 in normal form C without control characters, and fold as file systems fold them") {
  CHECK(fault_of_name("plain") == nullptr);
  CHECK(fault_of_name("caf\xc3\xa9 \xe6\xb7\xb1\xe5\xba\xa6") == nullptr);
  CHECK(std::string(fault_of_name("cafe\xcc\x81")) == "it is not in Unicode's normal form C");
  CHECK(std::string(fault_of_name("\xed\xa0\x80")) == "it is not UTF-8");
  CHECK(std::string(fault_of_name("a\xc2\x85"
                                  "b")) == "it holds a control character");
  CHECK(case_folded("ReadMe") == case_folded("README"));
  CHECK(case_folded("Stra\xc3\x9f"
                    "e") == case_folded("STRASSE"));
  CHECK(case_folded("\xc3\x89") == case_folded("\xc3\xa9"));
  CHECK(case_folded("a") != case_folded("b"));
  CHECK(is_utf8("\xc3\xa9"));
  CHECK_FALSE(is_utf8("\xc3"));
}
