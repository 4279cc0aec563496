// SPDX-License-Identifier: Apache-2.0
// Which bundles cannot stand beside each other in one index: they have different bytes under one name.
// Either could be the right one, so neither is guessed; of two versions of one bundle the newer one is right.
#pragma once

#include <string>
#include <vector>

#include "offline_repo/catalogue/catalogue.hpp"

namespace sealift::offline_repo {

struct Disagreement {
  std::size_t bundle = 0;  // its place among the given bundles
  InBoth why;              // what it has other bytes for, and than which bundle
};

// Those to leave out, each once and in their order; the rest agree on every name.
std::vector<Disagreement> disagreements_of(const std::vector<Contents>& bundles);

}  // namespace sealift::offline_repo
