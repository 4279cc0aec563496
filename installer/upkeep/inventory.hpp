// SPDX-License-Identifier: Apache-2.0
// The story of `sealift-install inventory`: what a prefix's store holds, carried out so that the next bundle can leave
// it out. Digests, names and versions; nothing about host, user, paths or times.
#pragma once

#include <string>
#include <vector>

#include "installer/prefix/prefix.hpp"
#include "sealift/bundle/manifest/inventory.hpp"

namespace sealift::installer {

struct TakenInventory {
  bundle::Inventory found;
  std::vector<std::string> warnings;  // damaged items and generations, which are left out
};

// Read only, without the prefix lock, since items and generations appear by one rename. Throws Missing when there is no
// prefix.
TakenInventory take_inventory(const Prefix& prefix);

}  // namespace sealift::installer
