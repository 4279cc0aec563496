// SPDX-License-Identifier: Apache-2.0
// A run that goes on with own kernels, where it began without, says that it agrees to rounding.
#include "trainer/loop/computed_with.hpp"

#include "tests/train/kernels/on_host.hpp"

#include <doctest/doctest.h>

using namespace sealift;
using namespace sealift::trainer;

TEST_CASE("whether own kernels are on is among the conditions of equal bits") {
  const Place place;
  const auto without = computed_with(place);
  CHECK(other_means({without}, place).empty());
  const test::OnHost host(kernels::Order::Given);
  CHECK(other_means({without}, place).find("goes on with own_kernels true (before: false): it agrees with one") !=
        std::string::npos);
  CHECK(other_means({computed_with(place)}, place).empty());
  kernels::switch_kernels(false);
  CHECK(other_means({without}, place).empty());
  kernels::switch_kernels(true);
  // A checkpoint of before knows nothing of them.
  auto before = nlohmann::json::parse(without.second);
  before.erase("own_kernels");
  CHECK(other_means({{without.first, before.dump()}}, place).empty());
}
