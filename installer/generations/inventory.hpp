// SPDX-License-Identifier: Apache-2.0
// `sealift-install inventory`: what this prefix's store holds, to be carried out, so that the next bundle can leave it
// out. Digests, names and versions; nothing about host, user, places or times.
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

// Only looks; needs no lock, as items and generations appear by one rename. Throws Missing where there is no prefix.
TakenInventory take_inventory(const Prefix& prefix);

}  // namespace sealift::installer
