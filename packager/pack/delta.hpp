// SPDX-License-Identifier: Apache-2.0
// `create --base INVENTORY`: what the target's store already has is listed in the bundle but not carried. The inventory
// comes from the isolated side, so only digests that the lock has as well are taken from it.
#pragma once

#include "packager/host/console.hpp"
#include "packager/pack/pack_plan.hpp"
#include "sealift/bundle/manifest/inventory.hpp"

namespace sealift::packager {

// At most 64 MiB are read. Throws as bundle::parse_inventory does.
bundle::Inventory read_inventory(const std::filesystem::path& file);

// Marks the entries that the inventory has as absent. If it has none, warns, and the bundle stays a whole one.
void make_delta(PackPlan& plan, const bundle::Inventory& inventory, Console& console);

}  // namespace sealift::packager
