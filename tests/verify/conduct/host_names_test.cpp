// SPDX-License-Identifier: Apache-2.0
// Hosts are told apart by what they are, and not by what they are called.
#include "verify/conduct/host_names.hpp"

#include <doctest/doctest.h>

using namespace sealift::verify;
using Names = std::vector<std::string>;

TEST_CASE("hosts keep their names, and each rank of a host has its name") {
  CHECK(names_of_hosts({{"a", "1"}, {"a", "1"}, {"b", "2"}}) == Names{"a", "a", "b"});
  CHECK(names_of_hosts({}).empty());
}

TEST_CASE("two hosts with one hostname are two: they are numbered in the order of their ranks") {
  CHECK(names_of_hosts({{"box", "1"}, {"b", "9"}, {"box", "2"}, {"box", "1"}}) ==
        Names{"box#1", "b", "box#2", "box#1"});
}

TEST_CASE("a host sees itself alike twice") {
  const auto one = see_host(), other = see_host();
  CHECK(one.hostname == other.hostname);
  CHECK(one.identity == other.identity);
  CHECK(one.identity.size() > 8);
}
