// SPDX-License-Identifier: Apache-2.0
// `create --patches`: a wheel that the target has in another version becomes a patch on that, entry by entry.
// What cannot be patched, or is not worth it, is carried whole, and says why; so a delta is always made.
#pragma once

#include <cstddef>

#include "packager/content/content.hpp"
#include "packager/delta/base.hpp"
#include "packager/files/cache.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// Where patches are made: the cache has the wheels that were sent, and `scratch` is an empty folder that stays until
// the bundle is written.
struct Patching {
  const Cache& cache;
  std::filesystem::path scratch;
};

// Of the entries that are not absent; returns how many became patches. Throws as read_repaired does.
std::size_t make_patches(PackPlan& plan, const Base& base, const Patching& patching, const Repair& repair,
                         bundle::Progress& progress);

}  // namespace sealift::packager
