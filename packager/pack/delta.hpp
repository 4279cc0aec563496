// SPDX-License-Identifier: Apache-2.0
// `create --base`: what the target's store already has is listed in the bundle but not carried. What it has an
// inventory says, or the bundle that was sent last. Nothing is taken from either: the names of the entries are computed
// here, from the bytes that were locked, and only looked up there.
#pragma once

#include <vector>

#include "packager/files/known_chunks.hpp"
#include "packager/pack/pack_plan.hpp"
#include "sealift/bundle/host/progress.hpp"
#include "sealift/bundle/manifest/inventory.hpp"
#include "sealift/bundle/trust/envelope.hpp"

namespace sealift::packager {

// At most 64 MiB are read. Throws as bundle::parse_inventory does.
bundle::Inventory read_inventory(const std::filesystem::path& file);

// What the store of a prefix holds that has installed this bundle and nothing else, equal to what `sealift-install
// inventory` prints there. Reads seal and chunk list, no volume. `root`: the fingerprint by which the bundle is
// verified; throws as bundle::verify does.
bundle::Inventory inventory_of_bundle(const std::filesystem::path& folder_or_seal, const bundle::Digest& root);

// `base` is an inventory's file, or a bundle's folder or seal, verified from the oldest of `roots` on.
bundle::Inventory read_base(const std::filesystem::path& base, const std::vector<bundle::Envelope>& roots);

// Marks the entries that the inventory has as absent. If it has none, warns, and the bundle stays a whole one. Reads
// the files whose chunks are not known, and remembers them; throws as read_repaired does.
void make_delta(PackPlan& plan, const bundle::Inventory& inventory, const KnownChunks& known, const Repair& repair,
                bundle::Progress& progress);

}  // namespace sealift::packager
