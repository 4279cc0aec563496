// SPDX-License-Identifier: Apache-2.0
// A step of `lock`: models and data -> files pinned by size and SHA-256.
#pragma once

#include <vector>

#include "packager/files/cache.hpp"
#include "packager/host/console.hpp"
#include "packager/files/fetch.hpp"
#include "packager/job/model.hpp"

namespace sealift::packager {

// A folder's files are hashed in parallel; a hub is asked, and what it gives no SHA-256 for (small files) is fetched
// into the cache. Throws Format with everything that speaks against a model before the long work begins.
std::vector<LockedModel> lock_models(const std::vector<JobModel>& models, const Cache& cache, Console& console,
                                     const FetchOptions& options = {});

}  // namespace sealift::packager
