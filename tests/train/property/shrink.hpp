// SPDX-License-Identifier: Apache-2.0
// Makes a configuration that fails smaller: turns features off one at a time as long as it still fails.
// After `configuration`; the test prints what is left.
// Greedy and repeated, since a feature may become idle only when another one went.
#pragma once

#include "tests/train/property/configuration.hpp"

#include <functional>

namespace sealift::test::property {

/// The smallest configuration found from `c` for which `fails` holds; asks no more once `enough` says so.
inline Configuration shrink(
    Configuration c, const std::function<bool(const Configuration&)>& fails,
    const std::function<bool()>& enough = [] { return false; }) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (std::size_t feature = 0; feature < kFeatures; ++feature) {
      for (std::size_t value = 0; value < c.choice[feature]; ++value) {
        if (enough()) return c;
        auto candidate = c;
        candidate.choice[feature] = value;
        candidate = without_idle_choices(candidate);
        if (candidate == c || candidate.to_be_refused() != c.to_be_refused() || !fails(candidate)) continue;
        c = candidate;
        smaller = true;
        break;
      }
    }
  }
  return c;
}

}  // namespace sealift::test::property
