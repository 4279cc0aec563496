// SPDX-License-Identifier: Apache-2.0
// A step of `lock`: models and data -> files pinned by size and SHA-256.
#pragma once

#include <vector>

#include "packager/files/cache.hpp"
#include "packager/network/fetch.hpp"
#include "packager/tables/model.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// Hashes a folder's files in parallel; asks a hub, and fetches into the cache the small files for which it gives no
// SHA-256. Throws Format with all faults of the models before the long work begins.
std::vector<LockedModel> lock_models(const std::vector<JobModel>& models, const Cache& cache,
                                     bundle::Progress& progress, const FetchOptions& options = {});

}  // namespace sealift::packager
