// SPDX-License-Identifier: Apache-2.0
// `create --base INVENTORY`: what the target's store already has is listed in the bundle but not carried. The inventory
// comes from the isolated side, so nothing is taken from it: the names of the entries are computed here, from the bytes
// that were locked, and only looked up there.
#pragma once

#include "packager/files/known_chunks.hpp"
#include "packager/pack/pack_plan.hpp"
#include "sealift/bundle/host/progress.hpp"
#include "sealift/bundle/manifest/inventory.hpp"

namespace sealift::packager {

// At most 64 MiB are read. Throws as bundle::parse_inventory does.
bundle::Inventory read_inventory(const std::filesystem::path& file);

// Marks the entries that the inventory has as absent. If it has none, warns, and the bundle stays a whole one. Reads
// the files whose chunks are not known, and remembers them; throws as read_repaired does.
void make_delta(PackPlan& plan, const bundle::Inventory& inventory, const KnownChunks& known, const Repair& repair,
                bundle::Progress& progress);

}  // namespace sealift::packager
