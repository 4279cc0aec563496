// SPDX-License-Identifier: Apache-2.0
// `create --base`: what the target's store already has is listed in the bundle but not carried. What it has an
// inventory says, or the bundle that was sent last. Nothing is taken from either but the name of a wheel that our own,
// signed bundle carried as a patch: all others are computed here, from the bytes that were locked, and looked up there.
#pragma once

#include "packager/delta/base.hpp"
#include "packager/delta/patches.hpp"
#include "packager/files/known_chunks.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// Marks the entries that the base has as absent; with `patching`, a wheel that it has in another version becomes a
// patch on that where this is much smaller. If it has none, warns, and the bundle stays a whole one. Reads the files
// whose chunks are not known, and remembers them; throws as read_repaired does.
void make_delta(PackPlan& plan, const Base& base, const KnownChunks& known, const Repair& repair,
                bundle::Progress& progress, const Patching* patching = nullptr);

}  // namespace sealift::packager
