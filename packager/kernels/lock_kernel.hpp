// SPDX-License-Identifier: Apache-2.0
// [[kernel]] -> one variant, pinned: a hub lists the repository, the variant is chosen as the locked loader chooses,
// and its files go into the cache, since the native check of `lock` reads them.
#pragma once

#include <vector>

#include "packager/files/cache.hpp"
#include "packager/kernels/kernel_variant.hpp"
#include "packager/network/fetch.hpp"
#include "packager/tables/kernel.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// For these wheels, on this kind of processor. Throws Missing where no loader is locked, or where it is older or newer
// than it can be; Platform where no variant fits, saying which there are; Format where a variant cannot be loaded;
// Usage where two revisions cannot lie beside each other; Network.
std::vector<LockedKernel> lock_kernels(const std::vector<ModelSpec>& kernels, const std::vector<LockedWheel>& wheels,
                                       const std::string& arch, const Cache& cache, bundle::Progress& progress,
                                       const FetchOptions& options = {});

}  // namespace sealift::packager
