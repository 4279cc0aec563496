// SPDX-License-Identifier: Apache-2.0
// Two steps of `lock`: models and data -> files pinned by size and SHA-256. What can be refused is refused by the
// first, the long work is the second.
#pragma once

#include <vector>

#include "packager/files/cache.hpp"
#include "packager/models/hub.hpp"
#include "packager/network/fetch.hpp"
#include "packager/tables/model.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// Lists folders; asks a hub, and fetches into the cache the small files for which it gives no SHA-256. Throws Format
// with all faults of the models.
std::vector<LockedModel> list_models(const std::vector<JobModel>& models, const Cache& cache,
                                     bundle::Progress& progress, const FetchOptions& options = {});

// Gives the files for which the hub has no SHA-256 theirs: they are small, and are fetched into the cache.
void pin_small_files(const ModelSpec& spec, HubListing& listing, const Cache& cache, const FetchOptions& options);

// Hashes the folders' files in parallel, and archives folders that travel as one file.
void hash_models(std::vector<LockedModel>& models, const Cache& cache, bundle::Progress& progress);

}  // namespace sealift::packager
